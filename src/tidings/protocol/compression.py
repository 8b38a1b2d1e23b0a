"""The compressions of record batches: what a batch's number means, undoing it within a limit, and doing it.

The one rule: a payload comes from a stranger. Undoing it ends in at most `decoded_bytes_max` bytes or in
ProtocolError, never in another exception, and holds no more than about twice the limit on the way.
It must not know what is inside a payload. The libraries are imported by the first payload that needs them, so
a broker which only passes batches through never pays for them.
Tests: tests/protocol/test_compression.py
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum

from tidings.protocol.errors import ProtocolError


class Compression(IntEnum):
    """The number in bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # 16: with gzip's header and trailer
# Each gzip member's rest is copied to find the next one, so small pieces keep many tiny members linear.
_GZIP_PIECE_BYTES = 64 * 1024

# Snappy as Java clients frame it: this magic, i32 version, i32 oldest compatible version, then blocks of i32
# length and raw snappy, big endian. librdkafka sends the raw block alone.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")
_XERIAL_BLOCK_LENGTH = struct.Struct(">i")
_XERIAL_BLOCK_BYTES = 32 * 1024


def decompress(codec: int, payload: bytes | memoryview, *, decoded_bytes_max: int) -> bytes:
    """What `payload` was made from."""
    if codec == Compression.NONE:
        if len(payload) > decoded_bytes_max:
            raise _too_large(decoded_bytes_max)
        return bytes(payload)
    if codec == Compression.GZIP:
        return _gzip_decompress(memoryview(payload), decoded_bytes_max)
    if codec == Compression.SNAPPY:
        return _snappy_decompress(memoryview(payload), decoded_bytes_max)
    if codec == Compression.LZ4:
        return _lz4_decompress(payload, decoded_bytes_max)
    if codec == Compression.ZSTD:
        return _zstd_decompress(payload, decoded_bytes_max)
    raise ProtocolError("the compression is unknown", compression=codec)


def compress(codec: int, payload: bytes) -> bytes:
    """`payload` in the form that Java clients write, for tools, tests and the broker's own topics."""
    if codec == Compression.NONE:
        return payload
    if codec == Compression.GZIP:
        compressor = zlib.compressobj(wbits=_GZIP_WINDOW)
        return compressor.compress(payload) + compressor.flush()
    if codec == Compression.SNAPPY:
        return _snappy_compress(payload)
    if codec == Compression.LZ4:
        import lz4.frame

        compressed: bytes = lz4.frame.compress(payload)
        return compressed
    if codec == Compression.ZSTD:
        import zstandard

        return zstandard.ZstdCompressor().compress(payload)
    raise ValueError(f"compression {codec} is unknown")


def _too_large(decoded_bytes_max: int) -> ProtocolError:
    return ProtocolError("compressed records grow beyond the limit", decoded_bytes_max=decoded_bytes_max)


def _malformed(codec: Compression, reason: object) -> ProtocolError:
    return ProtocolError("compressed records are malformed", compression=codec.name.lower(), reason=reason)


def _gzip_decompress(payload: memoryview, decoded_bytes_max: int) -> bytes:
    pieces = []
    decoded_bytes = 0
    position = 0
    member = zlib.decompressobj(_GZIP_WINDOW)
    while position < len(payload):
        if member.eof:
            member = zlib.decompressobj(_GZIP_WINDOW)
        chunk = payload[position : position + _GZIP_PIECE_BYTES]
        try:
            # One byte more than is allowed, so that growing beyond is seen (and 0 would mean no limit).
            piece = member.decompress(chunk, decoded_bytes_max - decoded_bytes + 1)
        except zlib.error as error:
            raise _malformed(Compression.GZIP, error) from None
        decoded_bytes += len(piece)
        if decoded_bytes > decoded_bytes_max:
            raise _too_large(decoded_bytes_max)
        pieces.append(piece)
        position += len(chunk) - len(member.unused_data)
    if not member.eof:
        raise _malformed(Compression.GZIP, "it ends within a member")
    return b"".join(pieces)


def _snappy_decompress(payload: memoryview, decoded_bytes_max: int) -> bytes:
    if payload[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _snappy_block(payload, decoded_bytes_max)
    pieces = []
    decoded_bytes = 0
    position = _XERIAL_HEADER.size
    if len(payload) < position:
        raise _malformed(Compression.SNAPPY, "it ends within its header")
    while position < len(payload):
        start = position + _XERIAL_BLOCK_LENGTH.size
        if start > len(payload):
            raise _malformed(Compression.SNAPPY, "it ends within a block's length")
        (length,) = _XERIAL_BLOCK_LENGTH.unpack_from(payload, position)
        if not 0 <= length <= len(payload) - start:
            raise _malformed(
                Compression.SNAPPY, f"a block of {length} bytes, {len(payload) - start} are left"
            )
        piece = _snappy_block(payload[start : start + length], decoded_bytes_max - decoded_bytes)
        decoded_bytes += len(piece)
        pieces.append(piece)
        position = start + length
    return b"".join(pieces)


def _snappy_block(block: memoryview, decoded_bytes_max: int) -> bytes:
    """One raw block. It names its decoded size first, and the library allocates just that."""
    import cramjam

    try:
        if cramjam.snappy.decompress_raw_len(block) > decoded_bytes_max:
            raise _too_large(decoded_bytes_max)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _malformed(Compression.SNAPPY, error) from None


def _snappy_compress(payload: bytes) -> bytes:
    import cramjam

    parts = [_XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1)]
    for position in range(0, len(payload), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(payload[position : position + _XERIAL_BLOCK_BYTES]))
        parts += (_XERIAL_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _lz4_decompress(payload: bytes | memoryview, decoded_bytes_max: int) -> bytes:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        decoded: bytes = frame.decompress(payload, max_length=decoded_bytes_max + 1)
    except (RuntimeError, EOFError, ValueError) as error:
        raise _malformed(Compression.LZ4, error) from None
    if len(decoded) > decoded_bytes_max:
        raise _too_large(decoded_bytes_max)
    if not frame.eof:
        raise _malformed(Compression.LZ4, "it ends within its frame")
    if frame.unused_data:
        raise _malformed(Compression.LZ4, f"{len(frame.unused_data)} bytes behind its frame")
    return decoded


def _zstd_decompress(payload: bytes | memoryview, decoded_bytes_max: int) -> bytes:
    """One frame at once: the library's stream reader cannot tell a cut frame from a whole one.

    The window is left at the library's limit of 128 MiB, which the highest levels of Java clients use: of
    it no more memory is touched than bytes are decoded.
    """
    import zstandard

    try:
        parameters = zstandard.get_frame_parameters(payload)
        # The library allocates what the frame claims, so the claim is judged first.
        if parameters.content_size not in (0, zstandard.CONTENTSIZE_UNKNOWN) and (
            parameters.content_size > decoded_bytes_max
        ):
            raise _too_large(decoded_bytes_max)
        frame = zstandard.ZstdDecompressor()
        return frame.decompress(payload, max_output_size=decoded_bytes_max, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise _malformed(Compression.ZSTD, error) from None
