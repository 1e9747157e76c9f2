#!/usr/bin/env python3
"""Writes shops.csv, the sales of 60 shops: the table of configs/shops.yaml.

A shop has a level, a slope by the discount and a curve over the week of its own. Noise leaves an r2 of 0.93 to be
explained. The table is that of seed 0, the same wherever Python's random is.
"""

import csv
import math
import pathlib
import random

SHOPS, ROWS = 60, 2400

draw = random.Random(0)
hidden = [[draw.gauss(0, 1) for _ in range(3)] for _ in range(SHOPS)]
with open(pathlib.Path(__file__).with_name("shops.csv"), "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["shop", "discount", "day", "sales"])
    for _ in range(ROWS):
        shop, discount, day = draw.randrange(SHOPS), draw.uniform(0, 1), draw.randrange(7)
        level, slope, curve = hidden[shop]
        sales = 3 * level + 6 * slope * discount + 3 * curve * math.sin(2 * math.pi * day / 7)
        writer.writerow([f"shop {shop}", f"{discount:.3f}", day, f"{100 + 10 * (sales + draw.gauss(0, 1.5)):.1f}"])
