package recording

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// magic begins every recording: a byte that no text has, a name, and line ends that a text transfer would change. Two
// bytes of version follow.
const magic = "\x89UTR\r\n\x1a\n"

// Kinds of blocks. A reader skips an unknown kind if it is a small letter.
const (
	headerBlock = 'H'
	eventBlock  = 'E'
	footerBlock = 'F'
)

// Bounds of unpacked blocks. A packed block may be a little larger where compression saves nothing.
const (
	maxHeader = 16 << 20
	maxEvents = 1 << 20
	packedTo  = 256 << 10 // a chunk of events is written at this size
	slack     = 1 << 10
)

// blockHead is kind, length packed, length unpacked, CRC-32C of these nine bytes and the packed ones.
const blockHead = 1 + 4 + 4 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged reports a recording whose bytes changed after they were written.
var ErrDamaged = errors.New("damaged")

func limitOf(kind byte) uint32 {
	if kind == eventBlock {
		return maxEvents
	}
	return maxHeader
}

// packer writes blocks.
type packer struct {
	w      io.Writer
	flate  *flate.Writer
	packed bytes.Buffer
}

func newPacker(w io.Writer) *packer {
	p := &packer{w: w}
	// Only a level outside -2 to 9 is an error.
	p.flate, _ = flate.NewWriter(&p.packed, flate.BestSpeed)
	return p
}

func (p *packer) block(kind byte, raw []byte) error {
	if uint64(len(raw)) > uint64(limitOf(kind)) {
		return fmt.Errorf("recording: a block of %d bytes is larger than the format allows (%d)", len(raw), limitOf(kind))
	}
	p.packed.Reset()
	p.packed.Write(make([]byte, blockHead))
	p.flate.Reset(&p.packed)
	// Both write to memory.
	_, _ = p.flate.Write(raw)
	_ = p.flate.Close()
	b := p.packed.Bytes()
	b[0] = kind
	binary.LittleEndian.PutUint32(b[1:], uint32(len(b)-blockHead))
	binary.LittleEndian.PutUint32(b[5:], uint32(len(raw)))
	binary.LittleEndian.PutUint32(b[9:], checksum(b[:9], b[blockHead:]))
	if _, err := p.w.Write(b); err != nil {
		return fmt.Errorf("recording: write: %w", err)
	}
	return nil
}

func checksum(head, packed []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, packed)
}

// unpacker reads blocks.
type unpacker struct {
	r      io.Reader
	packed []byte
	raw    []byte
	flate  io.ReadCloser
}

// errCut reports the end of the input within a block, or where one should begin.
var errCut = errors.New("cut off")

// block reads the next block; the bytes are valid until the next call.
func (u *unpacker) block() (kind byte, raw []byte, err error) {
	var head [blockHead]byte
	if _, err := io.ReadFull(u.r, head[:]); err != nil {
		return 0, nil, cut(err)
	}
	kind = head[0]
	packed, size := binary.LittleEndian.Uint32(head[1:]), binary.LittleEndian.Uint32(head[5:])
	limit := limitOf(kind)
	if size > limit || uint64(packed) > uint64(limit)+slack {
		return 0, nil, fmt.Errorf("%w: a block says that it has %d bytes", ErrDamaged, max(packed, size))
	}
	if u.packed, err = readUpTo(u.r, u.packed[:0], int(packed)); err != nil {
		return 0, nil, cut(err)
	}
	if checksum(head[:9], u.packed) != binary.LittleEndian.Uint32(head[9:]) {
		return 0, nil, fmt.Errorf("%w: the checksum of a block is wrong", ErrDamaged)
	}
	from := bytes.NewReader(u.packed)
	if u.flate == nil {
		u.flate = flate.NewReader(from)
	} else if err := u.flate.(flate.Resetter).Reset(from, nil); err != nil {
		return 0, nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	if u.raw, err = readUpTo(u.flate, u.raw[:0], int(size)); err != nil {
		return 0, nil, fmt.Errorf("%w: a block cannot be unpacked: %v", ErrDamaged, err)
	}
	return kind, u.raw, nil
}

// readUpTo reads exactly n bytes and takes memory only as they arrive, because n comes from the file.
func readUpTo(r io.Reader, b []byte, n int) ([]byte, error) {
	const step = 1 << 20
	for len(b) < n {
		part := min(step, n-len(b))
		at := len(b)
		if cap(b) < at+part {
			b = append(b, make([]byte, part)...)
		} else {
			b = b[:at+part]
		}
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b[:at], err
		}
	}
	return b, nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return fmt.Errorf("read: %w", err)
}
