#!/usr/bin/env python3
"""Writes reviews.csv, 1,600 reviews of hotels: the table of configs/reviews.yaml.

A review has one to five statements, each good or bad. A bad one has a bad word, or denies a good one, and the other way
round, so words alone do not tell which it is. The guest is content if most statements are good; one label in twenty is
turned over, which leaves an accuracy of 0.95 to be had. The table is that of seed 0, the same wherever Python's random is.
"""

import csv
import pathlib
import random

ROWS = 1600
SUBJECTS = ("room", "bed", "bathroom", "breakfast", "staff", "view", "price", "lift", "garden", "pool", "street", "lobby",
            "shower", "dinner", "waiter", "balcony", "carpet", "heating", "kitchen", "terrace")
GOOD = ("clean", "friendly", "quiet", "fair", "bright", "lovely", "fresh", "warm", "helpful", "spacious", "tidy", "pleasant",
        "comfortable", "generous", "cheerful")
BAD = ("dirty", "rude", "loud", "expensive", "dark", "ugly", "stale", "cold", "useless", "cramped", "messy", "gloomy",
       "broken", "stingy", "sad")
DENIALS = ("not", "never", "hardly", "far from", "anything but")
DEGREES = ("", "", "", "very", "really", "quite", "so")
ASIDES = ("we stayed three nights", "my sister had booked it", "it rained all week", "we came by train",
          "the town has an old bridge", "I would tell a friend", "the season had just begun")

draw = random.Random(0)


def statement(is_good):
    denies = draw.random() < 0.4
    words = [draw.choice(GOOD if is_good != denies else BAD)]
    degree = draw.choice(DEGREES)
    if denies:
        words.insert(0, draw.choice(DENIALS))
    elif degree:
        words.insert(0, degree)
    return " ".join(["the", draw.choice(SUBJECTS), draw.choice(("was", "was", "is", "seemed")), *words])


with open(pathlib.Path(__file__).with_name("reviews.csv"), "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["review", "content"])
    for _ in range(ROWS):
        kinds = [draw.random() < 0.5 for _ in range(draw.choice((1, 3, 5)))]
        parts = [statement(kind) for kind in kinds]
        if draw.random() < 0.5:
            parts.insert(draw.randrange(len(parts) + 1), draw.choice(ASIDES))
        text = ", ".join(parts)
        is_content = (2 * sum(kinds) > len(kinds)) != (draw.random() < 0.05)
        writer.writerow([text[0].upper() + text[1:] + draw.choice((".", "!", "")), "yes" if is_content else "no"])
