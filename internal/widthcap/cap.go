package widthcap

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Bounds of a cap.
const (
	MinCPUs   = 0.01
	MaxCPUs   = 1024
	MaxCredit = time.Hour
)

// File names the cap in a journal, as the name of its setting.
const File = "narrow"

// DefaultCredit is the credit of one CPU of the limit where none is asked for: what a quota of one CPU and a burst of as
// much let be spent at once. Forecasts have the same.
const DefaultCredit = 2 * cgroup.DefaultPeriod

// Cap bounds how many CPUs a cgroup uses at once.
type Cap struct {
	// CPUs is the limit, MinCPUs to MaxCPUs, exact to a thousandth.
	CPUs float64
	// Credit is the CPU time that the cgroup can save below the limit; 0: none.
	Credit time.Duration
	// Widest is how many CPUs it may use at once while it has credit; 0: every CPU.
	Widest int
}

// Of is the cap of a limit with its default credit.
func Of(limit float64) Cap {
	return Cap{CPUs: limit, Credit: time.Duration(limit * float64(DefaultCredit))}.rounded()
}

func (c Cap) rounded() Cap {
	c.CPUs = math.Round(c.CPUs*1000) / 1000
	c.Credit = c.Credit.Round(time.Microsecond)
	return c
}

// Check returns an error that names a value out of bounds, and the way out.
func (c Cap) Check() error {
	switch {
	case math.IsNaN(c.CPUs) || c.CPUs < MinCPUs || c.CPUs > MaxCPUs:
		return fmt.Errorf("a cap of %g CPUs: give %g to %d", c.CPUs, MinCPUs, MaxCPUs)
	case c.Credit < 0 || c.Credit > MaxCredit:
		return fmt.Errorf("a credit of %v: give at most %v", c.Credit, MaxCredit)
	case c.Widest < 0 || c.Widest > MaxCPUs || c.Widest > 0 && float64(c.Widest) < c.CPUs:
		return fmt.Errorf("%d CPUs at the widest: give the cap of %g or more", c.Widest, c.CPUs)
	}
	return nil
}

const (
	unitCPUs   = " CPUs"
	creditWord = "credit "
	widestWord = "widest "
)

// String returns the form that Parse reads: "2.5 CPUs, credit 500ms, widest 8".
func (c Cap) String() string {
	c = c.rounded()
	parts := []string{strconv.FormatFloat(c.CPUs, 'f', -1, 64) + unitCPUs}
	if c.Credit > 0 {
		parts = append(parts, creditWord+c.Credit.String())
	}
	if c.Widest > 0 {
		parts = append(parts, widestWord+strconv.Itoa(c.Widest))
	}
	return strings.Join(parts, ", ")
}

// Parse is the inverse of String. The error names what cannot be read.
func Parse(value string) (Cap, error) {
	bad := fmt.Errorf("%.80q is no cap of a width", value)
	var c Cap
	for i, part := range strings.Split(value, ", ") {
		var err error
		switch credit, isCredit := strings.CutPrefix(part, creditWord); {
		case i == 0:
			number, ok := strings.CutSuffix(part, unitCPUs)
			if !ok {
				return Cap{}, bad
			}
			c.CPUs, err = text.ParseDecimal(number)
		case isCredit:
			c.Credit, err = time.ParseDuration(credit)
		default:
			number, ok := strings.CutPrefix(part, widestWord)
			if !ok {
				return Cap{}, bad
			}
			c.Widest, err = strconv.Atoi(number)
		}
		if err != nil {
			return Cap{}, bad
		}
	}
	if err := c.Check(); err != nil {
		return Cap{}, fmt.Errorf("%w: %w", bad, err)
	}
	return c, nil
}

// Counts are what the scheduler counted of a cap in force.
type Counts struct {
	// Widest is how many CPUs the cgroup used at once at most, Now how many it uses.
	Widest, Now int
	// Credit is the CPU time saved now.
	Credit time.Duration
	// AtCap is how long it used as many CPUs as it may. Waited is how long at least one more thread waited then.
	AtCap, Waited time.Duration
	// Cut counts slices that ended early because the width fell.
	Cut uint64
	// Faults counts, for the whole scheduler and by name, what must not happen; nil: it does not count them.
	Faults map[string]uint64
}

// FS reads and writes the caps of this host. A cgroup has the id of its folder in the cpu controller's tree.
type FS interface {
	// Read returns the cap in force; false: there is none.
	Read(cgroup uint64) (Cap, bool, error)
	// Write puts a cap in force. The error wraps ErrUnavailable where the scheduler cannot run.
	Write(cgroup uint64, c Cap) error
	// Remove ends a cap. It is no error if there is none.
	Remove(cgroup uint64) error
	// Counts are those of a cap in force; false: there is none.
	Counts(cgroup uint64) (Counts, bool, error)
}

// ErrUnavailable is the error where this host cannot bound a width by sched_ext.
var ErrUnavailable = errors.New("this host cannot narrow by sched_ext")
