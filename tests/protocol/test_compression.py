"""Compression within a limit: every codec, other libraries' frames, garbage, cut frames and bombs."""

from __future__ import annotations

import gzip
import random
import resource
import struct
import subprocess
import sys
import textwrap

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.protocol.compression import Compression, compress, decompress
from tidings.protocol.errors import ProtocolError

TEXT = b"tidings of great joy, " * 5_000
COMPRESSING = [codec for codec in Compression if codec != Compression.NONE]
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def xerial(*blocks: bytes) -> bytes:
    return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def snappy_raw(payload: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(payload))


def zstd_stream(payload: bytes) -> bytes:
    """As Java clients write it: without the decoded size in the frame."""
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(payload) + stream.flush()


@given(codec=st.sampled_from(Compression), payload=st.binary(max_size=2_000), repeats=st.integers(1, 100))
def test_what_is_compressed_comes_back(codec: Compression, payload: bytes, repeats: int) -> None:
    plain = payload * repeats

    assert decompress(codec, compress(codec, plain), decoded_bytes_max=len(plain)) == plain


@pytest.mark.parametrize("codec", Compression)
def test_a_view_is_taken_as_bytes_are(codec: Compression) -> None:
    frame = memoryview(b"before" + compress(codec, TEXT))

    assert decompress(codec, frame[6:], decoded_bytes_max=len(TEXT)) == TEXT


def zstd_of_window(window_log: int) -> bytes:
    """A frame that asks its reader for a window of 2^`window_log` bytes."""
    parameters = zstandard.ZstdCompressionParameters(
        window_log=27, hash_log=10, chain_log=10, strategy=zstandard.STRATEGY_FAST
    )
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    frame = bytearray(stream.compress(TEXT) + stream.flush())
    frame[5] = (window_log - 10) << 3  # RFC 8878, 3.1.1.1.2
    return bytes(frame)


FOREIGN = {
    "gzip of several members": (
        Compression.GZIP,
        gzip.compress(TEXT[:50_000]) + gzip.compress(TEXT[50_000:]),
    ),
    "gzip stored": (Compression.GZIP, gzip.compress(TEXT, compresslevel=0)),
    "snappy raw": (Compression.SNAPPY, snappy_raw(TEXT)),
    "snappy in xerial blocks": (Compression.SNAPPY, xerial(snappy_raw(TEXT[:7]), snappy_raw(TEXT[7:]))),
    "snappy with an empty block": (Compression.SNAPPY, xerial(snappy_raw(b""), snappy_raw(TEXT))),
    "lz4 of independent blocks": (Compression.LZ4, lz4.frame.compress(TEXT, block_linked=False)),
    "lz4 without its size": (Compression.LZ4, lz4.frame.compress(TEXT, store_size=False)),
    "lz4 with checksums": (
        Compression.LZ4,
        lz4.frame.compress(TEXT, content_checksum=True, block_checksum=True),
    ),
    "zstd as a stream": (Compression.ZSTD, zstd_stream(TEXT)),
    "zstd with a checksum": (Compression.ZSTD, zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)),
    "zstd of the largest window that Java reads": (Compression.ZSTD, zstd_of_window(27)),
    "zstd of the highest level": (Compression.ZSTD, zstandard.ZstdCompressor(level=22).compress(TEXT)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_frames_as_other_libraries_make_them_are_read(name: str) -> None:
    codec, payload = FOREIGN[name]

    assert decompress(codec, payload, decoded_bytes_max=len(TEXT)) == TEXT


@pytest.mark.parametrize("codec", Compression)
def test_one_byte_over_the_limit_is_refused(codec: Compression) -> None:
    with pytest.raises(ProtocolError, match=r"limit|malformed"):
        decompress(codec, compress(codec, TEXT), decoded_bytes_max=len(TEXT) - 1)


@pytest.mark.parametrize("name", FOREIGN)
def test_one_byte_over_the_limit_is_refused_in_every_framing(name: str) -> None:
    codec, payload = FOREIGN[name]

    with pytest.raises(ProtocolError, match=r"limit|malformed"):
        decompress(codec, payload, decoded_bytes_max=len(TEXT) - 1)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_frame_cut_anywhere_is_refused(name: str) -> None:
    codec, payload = FOREIGN[name]
    ends = {0, 1, 3, 8, 15, 17, 19, len(payload) // 2, len(payload) - 5, len(payload) - 1}

    for end in ends - whole_ends(name, payload):
        with pytest.raises(ProtocolError):
            decompress(codec, payload[:end], decoded_bytes_max=len(TEXT))


def whole_ends(name: str, payload: bytes) -> set[int]:
    """Where a cut leaves whole frames: what is missing there, only the record count can tell."""
    return {19} if name == "snappy with an empty block" else set()


@pytest.mark.parametrize("codec", COMPRESSING)
def test_bytes_behind_the_frame_are_refused(codec: Compression) -> None:
    with pytest.raises(ProtocolError):
        decompress(codec, compress(codec, TEXT) + b"more", decoded_bytes_max=2 * len(TEXT))


@pytest.mark.parametrize("codec", COMPRESSING)
def test_no_bytes_are_no_frame(codec: Compression) -> None:
    with pytest.raises(ProtocolError):
        decompress(codec, b"", decoded_bytes_max=10)


@pytest.mark.parametrize(
    "payload",
    [
        XERIAL_HEADER[:-1],
        XERIAL_HEADER + b"\0",
        XERIAL_HEADER + struct.pack(">i", 1),
        XERIAL_HEADER + struct.pack(">i", -1),
        xerial(b""),
        xerial(snappy_raw(TEXT), b"\xff"),
        b"\xff\xff\xff\xff\x0f",  # 4 GiB, it says
    ],
)
def test_malformed_snappy_is_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        decompress(Compression.SNAPPY, payload, decoded_bytes_max=len(TEXT))


def test_a_zstd_window_beyond_what_java_reads_is_refused() -> None:
    with pytest.raises(ProtocolError, match="malformed"):
        decompress(Compression.ZSTD, zstd_of_window(28), decoded_bytes_max=len(TEXT))


@pytest.mark.parametrize("codec", [-1, 5, 6, 7])
def test_an_unknown_compression_is_refused(codec: int) -> None:
    with pytest.raises(ProtocolError, match="unknown"):
        decompress(codec, TEXT, decoded_bytes_max=len(TEXT))
    with pytest.raises(ValueError, match="unknown"):
        compress(codec, TEXT)


@settings(max_examples=200)
@given(codec=st.sampled_from(COMPRESSING), noise=st.binary(max_size=300))
def test_noise_ends_in_bytes_or_in_a_refusal(codec: Compression, noise: bytes) -> None:
    try:
        assert len(decompress(codec, noise, decoded_bytes_max=1_000)) <= 1_000
    except ProtocolError:
        return


@settings(max_examples=300)
@given(name=st.sampled_from(sorted(FOREIGN)), seed=st.integers(0, 2**32))
def test_mutated_frames_end_in_bytes_or_in_a_refusal(name: str, seed: int) -> None:
    codec, payload = FOREIGN[name]
    chance = random.Random(seed)
    mutated = bytearray(payload)
    for _ in range(chance.randint(1, 5)):
        mutated[chance.randrange(min(len(mutated), 200))] = chance.randrange(256)

    try:
        assert len(decompress(codec, bytes(mutated), decoded_bytes_max=len(TEXT))) <= len(TEXT)
    except ProtocolError:
        return


def test_many_tiny_gzip_members_take_time_in_proportion_to_their_bytes() -> None:
    members = gzip.compress(b"") * 50_000  # a megabyte: 25 GB would be copied if each member copied its rest

    assert decompress(Compression.GZIP, members, decoded_bytes_max=0) == b""


BOMB_BYTES = 256 << 20
LIMIT_BYTES = 1 << 20


def bomb(codec: Compression) -> bytes:
    """A small payload of much: made in pieces, so that the test itself stays small."""
    zeros = bytes(LIMIT_BYTES)
    count = BOMB_BYTES // LIMIT_BYTES
    if codec == Compression.GZIP:
        return gzip.compress(zeros) * count
    if codec == Compression.SNAPPY:
        return xerial(*[snappy_raw(zeros)] * count)
    if codec == Compression.LZ4:
        stream = lz4.frame.LZ4FrameCompressor()
        return b"".join((stream.begin(), *(stream.compress(zeros) for _ in range(count)), stream.flush()))
    zstd = zstandard.ZstdCompressor().compressobj()
    return b"".join((*(zstd.compress(zeros) for _ in range(count)), zstd.flush()))


@pytest.mark.serial
@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_is_refused_in_little_memory(codec: Compression) -> None:
    payload = bomb(codec)
    decompress(codec, compress(codec, TEXT), decoded_bytes_max=len(TEXT))  # libraries are loaded
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(ProtocolError):
        decompress(codec, payload, decoded_bytes_max=LIMIT_BYTES)

    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) * 1024
    assert grown_bytes < 8 * LIMIT_BYTES


def test_a_zstd_frame_that_claims_much_is_refused_before_anything_is_allocated() -> None:
    claims = zstandard.ZstdCompressor().compress(bytes(10_000))
    frame = zstandard.get_frame_parameters(claims)
    assert frame.content_size == 10_000

    with pytest.raises(ProtocolError, match="limit"):
        decompress(Compression.ZSTD, claims, decoded_bytes_max=9_999)


def test_the_libraries_are_not_imported_before_they_are_needed() -> None:
    script = """
        import sys
        import tidings.protocol.records, tidings.protocol.record_codec
        print([name for name in ("cramjam", "lz4", "zstandard") if name in sys.modules])
    """

    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        check=True,
        timeout=30,
        text=True,
    )

    assert printed.stdout.strip() == "[]"
