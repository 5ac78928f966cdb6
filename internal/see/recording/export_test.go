package recording

import "bytes"

// OptionalBlock packs a block of any kind.
func OptionalBlock(kind byte, raw []byte) []byte {
	var b bytes.Buffer
	// Writes to memory.
	_ = newPacker(&b).block(kind, raw)
	return b.Bytes()
}

// EncodeEvents and DecodeEvents convert an unpacked chunk.
func EncodeEvents(events []Event) []byte {
	var b []byte
	last := int64(0)
	for i := range events {
		b = appendEvent(b, &events[i], last)
		last = events[i].AtNS
	}
	return b
}

func DecodeEvents(b []byte) ([]Event, error) {
	s := source{b: b}
	var events []Event
	last := int64(0)
	for len(s.b) > 0 {
		var e Event
		if err := s.readEvent(&e, last); err != nil {
			return nil, err
		}
		last = e.AtNS
		events = append(events, e)
	}
	return events, nil
}
