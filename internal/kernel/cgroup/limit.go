package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// Limit is the bandwidth limit of one cgroup: [bandwidth.Limit] is the one value of it, and has the one check of its bounds.
type Limit = bandwidth.Limit

// The kernel's bounds of a limit, for those who may not import bandwidth.
const (
	MinPeriod     = bandwidth.MinPeriod
	MaxPeriod     = bandwidth.MaxPeriod
	MinQuota      = bandwidth.MinQuota
	DefaultPeriod = bandwidth.DefaultPeriod
)

// Unlimited is the limit of a new cgroup.
func Unlimited() Limit { return bandwidth.Unlimited() }

// Level is the limit at one level of a path.
type Level struct {
	Path  string
	Limit Limit
	// ID tells it from another cgroup that had or gets its path; 0: not known.
	ID uint64
}

// ReadLimit reads the limit of one cgroup. A cgroup without the files is Unlimited: the root, or a v2 cgroup without
// the cpu controller. A removed cgroup is an error.
func ReadLimit(fsys FS, path string) (Limit, error) {
	v, ok := fsys.Version(CPU)
	if !ok {
		return Limit{}, NewError(fsys, CPU, Error{Op: OpRead, Path: path, Kind: ErrNoController})
	}
	limit := Unlimited()
	for _, file := range LimitFiles(v) {
		text, err := fsys.Read(CPU, path, file)
		if errors.Is(err, ErrNoFile) {
			continue
		}
		if err != nil {
			return Limit{}, err
		}
		limit, err = applied(limit, FileValue{file, text})
		if err != nil {
			return Limit{}, NewError(fsys, CPU, Error{Op: OpRead, Path: path, File: file, Errno: err, Kind: ErrFormat})
		}
	}
	return limit, nil
}

// applied returns the limit after one file has taken a value. Only this function knows the meaning of each file.
func applied(l Limit, w FileValue) (Limit, error) {
	var err error
	switch w.File {
	case fileMax:
		return parseMax(l, w.Value)
	case fileQuota:
		l.Quota, err = parseMicros(w.Value, true)
	case filePeriod:
		l.Period, err = parseMicros(w.Value, false)
	case fileBurst, fileMaxBurst:
		l.Burst, err = parseMicros(w.Value, false)
	default:
		err = fmt.Errorf("%w: %q is not a file of limits", ErrFormat, w.File)
	}
	return l, err
}

// ParseMax reads cpu.max: "max 100000" or "50000 100000", in us.
func ParseMax(text string) (Limit, error) { return parseMax(Unlimited(), text) }

// parseMax keeps the period when the text has only a quota, as the kernel does (cpu_period_quota_parse).
func parseMax(l Limit, text string) (Limit, error) {
	words := strings.Fields(text)
	if len(words) < 1 || len(words) > 2 {
		return Limit{}, fmt.Errorf("%w: %.60q is not \"QUOTA PERIOD\"", ErrFormat, text)
	}
	var err error
	if words[0] == "max" {
		l.Quota = bandwidth.NoQuota
	} else if l.Quota, err = parseMicros(words[0], false); err != nil {
		return Limit{}, err
	}
	if len(words) == 2 {
		if l.Period, err = parseMicros(words[1], false); err != nil {
			return Limit{}, err
		}
	}
	return l, nil
}

// parseMicros reads a count of microseconds; signed allows -1, which means none.
func parseMicros(text string, signed bool) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if signed && strings.HasPrefix(text, "-") {
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return 0, fmt.Errorf("%w: %.40q is not a number", ErrFormat, text)
		}
		return bandwidth.NoQuota, nil
	}
	us, err := strconv.ParseUint(text, 10, 64)
	if err != nil || us > math.MaxInt64/1000 {
		return 0, fmt.Errorf("%w: %.40q is not a number of microseconds", ErrFormat, text)
	}
	return time.Duration(us) * bandwidth.Unit, nil
}

// Levels reads the limits along a path: own level first, then each ancestor up to "/". If the mount shows only part of
// the tree, it ends at the highest visible cgroup: limits above are unreadable. A path deeper than MaxDepth is
// ErrTooMuch, because a missing limit would make the answer wrong.
func Levels(fsys FS, path string) ([]Level, error) {
	var levels []Level
	for {
		limit, err := ReadLimit(fsys, path)
		if errors.Is(err, ErrOutside) && len(levels) > 0 {
			return levels, nil
		}
		if err != nil {
			return nil, err
		}
		levels = append(levels, Level{Path: path, Limit: limit})
		if path == "/" {
			return levels, nil
		}
		if len(levels) > MaxDepth {
			return nil, NewError(fsys, CPU, Error{Op: OpRead, Path: levels[0].Path, Kind: ErrTooMuch, Why: "nested deeper than the bound"})
		}
		path = Parent(path)
	}
}

// Effective returns the least limit along the levels and the path that sets it. Of equal limits it takes the one
// nearest to the leaf.
func Effective(levels []Level) (cpus float64, limited bool, at string) {
	for _, level := range levels {
		if own, ok := level.Limit.Bound(); ok && (!limited || own < cpus) {
			cpus, limited, at = own, true, level.Path
		}
	}
	return cpus, limited, at
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
