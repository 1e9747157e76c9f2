"""Arrays in NumPy's format, for scripts that run without it."""


def npy(values: bytes, dtype: str, shape: tuple) -> bytes:
    """The bytes of an array of this type, such as '<f4', as a file of version 1."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values
