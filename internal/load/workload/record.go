package workload

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Record is one sleep of the sleeper.
type Record struct {
	Start time.Duration // when it was asked for, on CLOCK_MONOTONIC, the same for all processes
	Took  time.Duration // until the thread ran again, by the same clock
	Work  uint64        // rounds that all burners together had gone by then
}

// End is when the sleeper ran again.
func (r Record) End() time.Duration { return r.Start + r.Took }

// recordBytes is the size of a record on the pipe: three little-endian 64-bit
// numbers. It is below PIPE_BUF, so a record is written whole or not at all.
const recordBytes = 24

func (r Record) encode(to *[recordBytes]byte) {
	binary.LittleEndian.PutUint64(to[0:], uint64(r.Start))
	binary.LittleEndian.PutUint64(to[8:], uint64(r.Took))
	binary.LittleEndian.PutUint64(to[16:], r.Work)
}

func decodeRecord(from *[recordBytes]byte) (Record, error) {
	start := binary.LittleEndian.Uint64(from[0:])
	took := binary.LittleEndian.Uint64(from[8:])
	if start > math.MaxInt64/2 || took > math.MaxInt64/2 {
		return Record{}, fmt.Errorf("record of a sleep: start %d ns, took %d ns: no such times", start, took)
	}
	return Record{time.Duration(start), time.Duration(took), binary.LittleEndian.Uint64(from[16:])}, nil
}
