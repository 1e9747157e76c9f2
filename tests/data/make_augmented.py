"""Writes tests/data/augmented.npz: what Pillow makes of small images with the amounts that augmentations draw.

    python3 -m venv /tmp/augmented && /tmp/augmented/bin/pip install pillow==11.3.0 numpy==2.2.6
    /tmp/augmented/bin/python tests/data/make_augmented.py

The archive has the images by name, as 8-bit [height, width, channels], and for each change of one of them
`<change>.<image>.<amount>`. The calls are those that torchvision's functions make for an image of Pillow: rotate,
adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue and resized_crop.
"""

import pathlib

import numpy
from PIL import Image, ImageEnhance

FILE = pathlib.Path(__file__).parent / "augmented.npz"

ANGLES = ["0", "15", "-15", "30.5", "45", "90", "180", "270", "-123.456", "359.9", "360"]
FACTORS = ["0", "0.3", "0.8", "1", "1.2", "2.5"]
TURNS = ["-0.5", "-0.1", "0", "0.003", "0.05", "0.3", "0.5"]
PARTS = [(0, 0, 21, 17), (3, 2, 11, 9), (20, 16, 1, 1), (0, 5, 21, 4), (8, 0, 2, 17)]  # top, left, height, width


def picture(height, width, channels):
    """Smooth colours with some noise, so that neither a shift nor a swap of channels goes unnoticed."""
    rng = numpy.random.default_rng(3)
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [120 + 100 * numpy.sin(x / 4 + c) + 30 * numpy.cos(y / (3 + c)) + 5 * rng.standard_normal(x.shape)
              for c in range(channels)]
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def colours():
    """All colours of 8 levels a channel."""
    levels = numpy.array([0, 1, 50, 85, 128, 170, 254, 255], numpy.uint8)
    return numpy.stack(numpy.meshgrid(levels, levels, levels), -1).reshape(16, 32, 3)


def shifted_hue(image, turns):
    hue, saturation, value = image.convert("HSV").split()
    shift = int(turns * 255) % 256
    hue = Image.fromarray((numpy.asarray(hue).astype(int) + shift).astype(numpy.uint8))
    return Image.merge("HSV", (hue, saturation, value)).convert("RGB")


def main():
    images = {"rgb": picture(21, 17, 3), "grey": picture(21, 17, 1), "square": picture(12, 12, 3), "colours": colours()}
    arrays = dict(images)
    for name, pixels in images.items():
        channels = pixels.shape[2]
        image = Image.fromarray(pixels if channels == 3 else pixels[:, :, 0])

        def add(change, amount, result):
            arrays[f"{change}.{name}.{amount}"] = numpy.asarray(result).reshape(pixels.shape)

        for turns in TURNS if channels == 3 else []:
            add("hue", turns, shifted_hue(image, float(turns)))
        for angle in ANGLES if name != "colours" else []:
            add("rotate", angle, image.rotate(float(angle), Image.NEAREST))
        for factor in FACTORS:
            add("brightness", factor, ImageEnhance.Brightness(image).enhance(float(factor)))
            add("contrast", factor, ImageEnhance.Contrast(image).enhance(float(factor)))
            if channels == 3:
                add("saturation", factor, ImageEnhance.Color(image).enhance(float(factor)))
        for top, left, height, width in PARTS if name in ("rgb", "grey") else []:
            part = image.crop((left, top, left + width, top + height)).resize(image.size, Image.BILINEAR)
            add("part", f"{top}_{left}_{height}_{width}", part)
    numpy.savez_compressed(FILE, **arrays)


if __name__ == "__main__":
    main()
