package flightrecorder

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A slot's file is a header of headerBytes, then the ring's rows in place, little-endian. The header has the length of
// the JSON, its CRC-32, and the JSON. It is written after its rows. A crash in between leaves the previous header,
// which is wrong about at most the oldest rows: those that the next write would replace.
//
// Version 1 does not say of which boot a container is: its rows are of a boot that is not known.
const fileVersion = 2

type fileHeader struct {
	Version   int      `json:"version"`
	Container Identity `json:"container"`
	Next      int      `json:"next"`
	Rows      int      `json:"rows"`
	EndMS     int64    `json:"end_ms"`
	Written   uint64   `json:"written"`
}

// maxNameBytes bounds a container's name in a header.
const maxNameBytes = 1024

func slotFile(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("periods-%02d", i)) }

// Flush writes new rows to the files in dir. It makes dir with mode 0700, because other users have no right to
// containers' names and habits. A failure leaves the recorder unchanged, and the next Flush tries again.
func (r *Recorder) Flush(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("flight recorder: %w", err)
	}
	var failed error
	for i, s := range r.slots {
		if s == nil || s.ring.written == s.flushed && s.flushed > 0 {
			continue
		}
		if err := s.flush(slotFile(dir, i)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("flight recorder: %w", err))
		}
	}
	return failed
}

func (s *slot) flush(name string) error {
	flags := os.O_CREATE | os.O_WRONLY
	if s.flushed == 0 { // an existing file has rows of the slot's previous container, or of a time that came again
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return err
	}
	err = s.write(f)
	return errors.Join(err, f.Close())
}

func (s *slot) write(f *os.File) error {
	r := &s.ring
	fresh := int(min(r.written-s.flushed, uint64(len(r.rows))))
	// The newest rows end before next; they may wrap around the end of the ring.
	from := r.next - fresh
	if from < 0 {
		if err := writeRows(f, r.rows[ringRows+from:], ringRows+from); err != nil {
			return err
		}
		from = 0
	}
	if err := writeRows(f, r.rows[from:r.next], from); err != nil {
		return err
	}
	head, err := encodeHeader(fileHeader{fileVersion, bounded(s.container), r.next, len(r.rows), r.endMS, r.written})
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(head, 0); err != nil {
		return err
	}
	s.flushed = r.written
	return nil
}

func writeRows(f *os.File, rows []Row, at int) error {
	if len(rows) == 0 {
		return nil
	}
	b := make([]byte, 0, len(rows)*rowBytes)
	for _, row := range rows {
		b = binary.LittleEndian.AppendUint64(b, uint64(row))
	}
	_, err := f.WriteAt(b, headerBytes+int64(at)*rowBytes)
	return err
}

func bounded(c Identity) Identity {
	c.Name = cut(c.Name)
	c.Path = cut(c.Path)
	return c
}

func cut(s string) string { return s[:min(len(s), maxNameBytes)] }

func encodeHeader(h fileHeader) ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	const frame = 8
	if len(text) > headerBytes-frame {
		h.Container.Name = "" // escaped, a byte may take six; the id and the path's inode still identify it
		h.Container.Path = ""
		if text, err = json.Marshal(h); err != nil {
			return nil, err
		}
	}
	b := make([]byte, headerBytes)
	binary.LittleEndian.PutUint32(b, uint32(len(text)))
	binary.LittleEndian.PutUint32(b[4:], crc32.ChecksumIEEE(text))
	copy(b[frame:], text)
	return b, nil
}

// decodeSlot reads a slot's file.
func decodeSlot(b []byte) (*slot, error) {
	if len(b) < headerBytes {
		return nil, errors.New("shorter than its header")
	}
	n := binary.LittleEndian.Uint32(b)
	if n > headerBytes-8 {
		return nil, errors.New("its header is damaged")
	}
	text := b[8 : 8+n]
	if crc32.ChecksumIEEE(text) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, errors.New("its header is damaged")
	}
	var h fileHeader
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, fmt.Errorf("its header: %w", err)
	}
	switch {
	case h.Version > fileVersion:
		return nil, fmt.Errorf("version %d was written by a newer unthrottle; this one reads up to %d", h.Version, fileVersion)
	case h.Rows < 0 || h.Rows > ringRows || h.Next < 0 || h.Next >= ringRows || h.Rows < ringRows && h.Next != h.Rows:
		return nil, errors.New("its header contradicts itself")
	case len(b) < headerBytes+h.Rows*rowBytes:
		return nil, fmt.Errorf("cut short: %d rows announced", h.Rows)
	}
	s := &slot{container: h.Container, flushed: h.Written}
	s.ring = ring{rows: make([]Row, h.Rows), next: h.Next, endMS: h.EndMS, written: h.Written}
	for i := range s.ring.rows {
		s.ring.rows[i] = Row(binary.LittleEndian.Uint64(b[headerBytes+i*rowBytes:]))
	}
	return s, nil
}

// Load reads the files that an agent flushed to dir; the kept rows continue from their end. It leaves out unreadable
// files and names them in the error, with a recorder of the rest. Without the directory it returns an empty recorder.
func Load(dir string) (*Recorder, error) {
	r := NewRecorder()
	var failed error
	for i := range r.slots {
		b, err := readBounded(slotFile(dir, i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			if r.slots[i], err = decodeSlot(b); err == nil {
				r.rescore(r.slots[i])
			}
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("flight recorder: %s: %w", slotFile(dir, i), err))
		}
	}
	return r, failed
}

// rescore gives a loaded slot the score that its rows had earned; without it the first new container would take the
// slot.
func (r *Recorder) rescore(s *slot) {
	for _, p := range s.ring.periods(time.Time{}, time.UnixMilli(s.ring.endMS)) {
		r.score(s.container.Key(), p)
	}
}

func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if most := int64(headerBytes + ringRows*rowBytes); !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("not one of ours: no regular file of at most %d bytes", most)
	}
	return os.ReadFile(name)
}
