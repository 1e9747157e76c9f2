"""Writes tests/data/images: small images in the variants of PNG and JPEG, and in expected.npz what Pillow makes of them.

    pip install pillow numpy && python tests/data/make_images.py

For each file, expected.npz has `<stem>`, the image as 8-bit [height, width, channels] with the orientation in EXIF
data applied; for two of them also `<stem>.<height>x<width>`, the same resized by Image.BILINEAR.
"""

import io
import pathlib
import struct
import zlib

import numpy
from PIL import Image, ImageOps

FOLDER = pathlib.Path(__file__).parent / "images"
SIZES = [(5, 7), (31, 40), (12, 9), (1, 1)]


def picture(height, width, channels):
    """Smooth colours with some noise, so that neither a shift nor a swap of channels goes unnoticed."""
    rng = numpy.random.default_rng(7)
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [127 + 90 * numpy.sin(x / 3 + c) + 30 * numpy.cos(y / (2 + c)) + 6 * rng.standard_normal(x.shape)
              for c in range(channels)]
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png16(pixels, grey):
    """A PNG of 16 bits, which Pillow does not write in colour."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 16, 0 if grey else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def exif(orientation):
    data = Image.Exif()
    data[0x0112] = orientation
    return data.tobytes()


def interlaced(pixels):
    """A PNG in Adam7, which Pillow does not write either."""
    height, width = pixels.shape[:2]
    rows = b""
    for x0, y0, dx, dy in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                           (0, 1, 1, 2)]:
        part = pixels[y0::dy, x0::dx]
        if part.size:
            rows += b"".join(b"\0" + row.tobytes() for row in part)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    FOLDER.mkdir(exist_ok=True)
    expected = {}

    def add(name, data, image=None):
        (FOLDER / name).write_bytes(data)
        image = image or ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        grey = image.mode in ("1", "L", "LA")
        image = image.convert("L" if grey else "RGB")
        stem = name
        expected[stem] = numpy.asarray(image).reshape(image.height, image.width, -1)
        for height, width in SIZES if name in ("rgb.png", "grey.png") else []:
            small = image.resize((width, height), Image.BILINEAR)
            expected[f"{stem}.{height}x{width}"] = numpy.asarray(small).reshape(height, width, -1)

    def save(name, image, **options):
        to = io.BytesIO()
        image.save(to, name.rsplit(".", 1)[1].replace("jpg", "jpeg"), **options)
        add(name, to.getvalue())

    rgb, grey = picture(21, 17, 3), picture(21, 17, 1)
    colour, shades = Image.fromarray(rgb), Image.fromarray(grey[:, :, 0])
    alpha = Image.fromarray(numpy.concatenate([rgb, grey], -1), "RGBA")
    save("rgb.png", colour)
    save("grey.png", shades)
    save("grey_alpha.png", alpha.convert("LA"))
    save("alpha.png", alpha)
    save("palette.png", colour.quantize(11))
    save("palette_transparent.png", colour.quantize(11), transparency=3)
    save("bits.png", shades.convert("1"))
    save("turned.png", colour, exif=exif(6))
    wide = rgb.astype(numpy.uint32) * 257 + 100
    wide = numpy.clip(wide, 0, 65535)
    rounded = Image.fromarray(((wide * 255 + 32895) >> 16).astype(numpy.uint8))
    add("rgb16.png", png16(wide, False), rounded)
    add("grey16.png", png16(wide[:, :, :1], True), Image.fromarray(numpy.asarray(rounded)[:, :, 0]))
    add("interlaced.png", interlaced(rgb))
    save("rgb.jpg", colour, quality=90)
    save("full.jpg", colour, quality=95, subsampling=0)
    save("grey.jpg", shades, quality=90)
    save("progressive.jpg", colour, quality=90, progressive=True)
    save("cmyk.jpg", colour.convert("CMYK"), quality=95)
    for orientation in range(2, 9):
        save(f"turned{orientation}.jpg", colour, quality=90, exif=exif(orientation))
    numpy.savez_compressed(FOLDER / "expected.npz", **expected)


if __name__ == "__main__":
    main()
