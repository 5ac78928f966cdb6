package pace

import "time"

// Mean is a running mean with its mean deviation, as TCP keeps its round trip times (RFC 6298). The zero value has seen nothing.
type Mean struct {
	value, deviation time.Duration
	any              bool
}

// Add takes in a value.
func (m *Mean) Add(v time.Duration) {
	if !m.any {
		*m = Mean{v, v / 2, true}
		return
	}
	off := v - m.value
	m.value += off / 8
	m.deviation += (max(off, -off) - m.deviation) / 4
}

// Value is the mean.
func (m *Mean) Value() time.Duration { return m.value }

// High is a value that few exceed.
func (m *Mean) High() time.Duration { return m.value + 2*m.deviation }
