package recorded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Bounds of a file.
const (
	MaxServices = 100
	MaxPeriods  = 10_000
	MaxWidth    = 1024
	MaxKind     = 40
)

// File is what a file has.
type File struct {
	// About says how it was made, for people.
	About string `json:"about"`
	// ReplayedCPUs is how many CPUs the replays had.
	ReplayedCPUs int       `json:"replayed_cpus"`
	Services     []Service `json:"services"`
}

// Service is the demand of one service.
type Service struct {
	// Kind is what it is, such as "web server".
	Kind string `json:"kind"`
	// Date and Kernel (its release, without what a distribution adds) are those of the recording, RecordedCPUs its host's.
	Date         string `json:"date"`
	Kernel       string `json:"kernel"`
	RecordedCPUs int    `json:"recorded_cpus"`
	PeriodUS     int64  `json:"period_us"`
	// WorkUS is CPU time in microseconds, Width the most CPUs at once, by period.
	WorkUS []int64 `json:"work_us"`
	Width  []int32 `json:"width"`
}

// Period is the length of its periods.
func (s *Service) Period() time.Duration { return time.Duration(s.PeriodUS) * time.Microsecond }

// CPUs is its mean use.
func (s *Service) CPUs() float64 {
	sum := int64(0)
	for _, w := range s.WorkUS {
		sum += w
	}
	return float64(sum) / float64(s.PeriodUS) / float64(len(s.WorkUS))
}

// Decode reads a file. The error says which part of it makes no sense.
func Decode(text []byte) (File, error) {
	var f File
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return File{}, err
	}
	return f, f.check()
}

func (f *File) check() error {
	if n := len(f.Services); n > MaxServices {
		return fmt.Errorf("%d services: at most %d", n, MaxServices)
	}
	for i := range f.Services {
		if err := f.Services[i].check(); err != nil {
			return fmt.Errorf("service %d, %.40q: %w", i, f.Services[i].Kind, err)
		}
		if i > 0 && f.Services[i-1].Kind >= f.Services[i].Kind {
			return fmt.Errorf("service %d, %.40q: services are in order of their kinds, each once", i, f.Services[i].Kind)
		}
	}
	return nil
}

func (s *Service) check() error {
	switch n := len(s.WorkUS); {
	case s.Kind == "" || len(s.Kind) > MaxKind:
		return fmt.Errorf("a kind has 1 to %d bytes", MaxKind)
	case s.PeriodUS < 1000 || s.PeriodUS > 1_000_000:
		return fmt.Errorf("a period of %d µs: 1,000 to 1,000,000", s.PeriodUS)
	case n == 0 || n > MaxPeriods || n != len(s.Width):
		return fmt.Errorf("work of %d periods and widths of %d: as many of both, 1 to %d", n, len(s.Width), MaxPeriods)
	}
	for i, work := range s.WorkUS {
		width := s.Width[i]
		if work < 0 || width < 0 || width > MaxWidth || work > int64(width)*s.PeriodUS {
			return fmt.Errorf("period %d: %d µs on %d CPUs", i, work, width)
		}
	}
	return nil
}

// Put adds a service, in the place of the one of its kind if there is one.
func (f *File) Put(s Service) {
	i, there := slices.BinarySearchFunc(f.Services, s.Kind,
		func(a Service, kind string) int { return cmp.Compare(a.Kind, kind) })
	if there {
		f.Services[i] = s
		return
	}
	f.Services = slices.Insert(f.Services, i, s)
}

// Encode writes a file, with a line for each service.
func (f *File) Encode() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	about, err := json.Marshal(f.About)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"about\": %s,\n\"replayed_cpus\": %d,\n\"services\": [", about, f.ReplayedCPUs)
	for i := range f.Services {
		line, err := json.Marshal(&f.Services[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}
