package generate

import (
	_ "embed"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand/recorded"
)

// recordedJSON is written by make truth-demand.
//
//go:embed recorded.json
var recordedJSON []byte

// recordings are those of the tree.
var recordings = sync.OnceValues(func() ([]recording, error) {
	f, err := recorded.Decode(recordedJSON)
	if err != nil {
		return nil, err
	}
	recordings := make([]recording, len(f.Services))
	for i := range recordings {
		if recordings[i], err = recordingOf(&f.Services[i]); err != nil {
			return nil, err
		}
	}
	return recordings, nil
})

// recording is the demand of a real service, over and over.
type recording struct {
	kind   string
	cpus   float64 // mean use
	workNS []int64
	width  []int32
	widest int32
	// calm is the median of its periods' work, calmWidth that of its width. Work beyond it comes in stretches.
	calm      int64
	calmWidth int32
}

func recordingOf(s *recorded.Service) (recording, error) {
	r := recording{kind: s.Kind, cpus: s.CPUs(), width: s.Width, widest: slices.Max(s.Width)}
	if s.Period() != period || r.cpus <= 0 {
		return r, errors.New("a recording has periods of another length, or no work")
	}
	for _, us := range s.WorkUS {
		r.workNS = append(r.workNS, us*int64(time.Microsecond))
	}
	r.calm, r.calmWidth = median(r.workNS), max(1, median(r.width))
	return r, nil
}

func median[T int32 | int64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// replay is a service of a drawn size that wants CPUs as a recording did.
type replay struct {
	source *recording
	// size is how many times as wide it is as the recorded one, with as much more work.
	size float64
	// parts are clients of their own: as many times the recorded ones, each from a moment of its own.
	parts []part
}

// part begins with a period of the recording. share is how many of its requests it has, from 0 to 1.
type part struct {
	from  int
	share float64
}

// replayOf draws a service that a limit holds back a little, or not at all: its mean use at the peak is that of
// profileOf. A service that uses more than the recorded one is wider, or has more clients, or both. One that uses less
// has fewer requests, each as wide as recorded.
func replayOf(chance *rand.Rand, recorded []recording, limit float64) replay {
	r := replay{source: &recorded[chance.IntN(len(recorded))], size: 1}
	rate := limit * (0.05 + 0.5*chance.Float64()*chance.Float64()) / r.source.cpus
	if rate > 1 {
		r.size = min(math.Pow(rate, chance.Float64()), max(1, float64(hostCPUs)/float64(r.source.widest)))
	}
	for left := rate / r.size; left > 0; left-- {
		r.parts = append(r.parts, part{chance.IntN(len(r.source.workNS)), min(1, left)})
	}
	return r
}

// offered is the demand at a level of load. What a period has up to the median is less at less load. A stretch of
// periods above it comes whole or not at all, as often as the load says.
func (r *replay) offered(chance *rand.Rand, level int) offered {
	d := offered{make([]int64, periods), make([]int32, periods)}
	load := float64(level+1) / levels
	widest := make([]int64, periods) // work of the widest part
	for _, p := range r.parts {
		keep := load * p.share
		above, kept := false, false
		for i := range d.workNS {
			j := (p.from + i) % len(r.source.workNS)
			work, width := r.source.workNS[j], r.source.width[j]
			if was := above; work > r.source.calm {
				if above = true; !was {
					kept = chance.Float64() < keep
				}
			} else {
				above = false
			}
			beyond := max(0, work-r.source.calm)
			calm := float64(work-beyond) * keep
			if above && !kept {
				beyond, width = 0, min(width, r.source.calmWidth)
			}
			mine := int64(r.size * (calm + float64(beyond)))
			wide := int32(math.Ceil(r.size * float64(width)))
			d.workNS[i] += mine
			if mine > 0 && wide > d.width[i] {
				d.width[i], widest[i] = wide, mine
			}
		}
	}
	for i := range d.workNS {
		// The widest part runs beside what the others use on average.
		others := math.Ceil(float64(d.workNS[i]-widest[i]) / float64(period))
		d.width[i] = max(1, min(hostCPUs, d.width[i]+int32(others)))
		d.workNS[i] = min(d.workNS[i], int64(d.width[i])*int64(period))
	}
	return d
}
