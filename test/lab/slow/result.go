package slow

import (
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// Result is what --slow-json writes and the last line of a run says.
type Result struct {
	Factor Factor `json:"factor"`
	// Steady: a CPU was to be as fast while the others were idle as while all were busy.
	Steady bool `json:"steady,omitempty"`
	// GuestSeconds is how long the steps took by the guest's clock, HostSeconds how long the whole run took by the host's.
	GuestSeconds float64 `json:"guest_seconds"`
	HostSeconds  float64 `json:"host_seconds"`
	// LoopRateOne and LoopRateAll are rounds of a tight loop per second and guest CPU, with one and with all CPUs busy.
	LoopRateOne float64 `json:"loop_rate_one"`
	LoopRateAll float64 `json:"loop_rate_all"`
	// SwitchNs is the cost of a switch between two threads on one CPU, SleepLateUs the median by which a sleep of 1 ms ends
	// late.
	SwitchNs    float64 `json:"switch_ns"`
	SleepLateUs float64 `json:"sleep_late_us"`
	// StealShare is the share of the host's CPU time that others and the hypervisor had during the run; null: not
	// measured.
	StealShare *float64 `json:"steal_share"`
	// Pace is how many host seconds passed per guest second between two moments that both clocks saw.
	Pace float64 `json:"pace"`
	OK   bool    `json:"ok"`
	// Off says what is off.
	Off []string `json:"off"`
}

// Bounds of a calibration that is ok. Sleeps and switches count in guest time: real machines end a sleep of 1 ms some
// 60 us late and switch in 1 to 3 us.
const (
	mostLateUs   = 500
	mostSwitchNs = 50_000
	mostSteal    = 0.25
	mostPaceOff  = 0.05
	// mostFaster is how much faster one busy CPU may be than all of a steady guest.
	mostFaster = 1.25
)

// Ran is what is known of a run at its end.
type Ran struct {
	Factor      Factor
	Steady      bool
	Guest, Host time.Duration
	// Pace is host time per guest time; 0: not measured.
	Pace  float64
	Speed wire.Speed
	// Others is the share of the host's CPU time that others had; nil: not measured.
	Others *float64
}

// Judge says what a run is worth.
func Judge(r Ran) Result {
	result := Result{
		Factor: r.Factor, Steady: r.Steady, GuestSeconds: r.Guest.Seconds(), HostSeconds: r.Host.Seconds(),
		LoopRateOne: r.Speed.LoopRateOne, LoopRateAll: r.Speed.LoopRateAll,
		SwitchNs: r.Speed.SwitchNs, SleepLateUs: r.Speed.SleepLateUs, StealShare: r.Others, Pace: r.Pace, Off: []string{},
	}
	off := func(format string, args ...any) { result.Off = append(result.Off, fmt.Sprintf(format, args...)) }
	if r.Speed == (wire.Speed{}) {
		off("the guest was not calibrated")
	}
	if one, all := r.Speed.LoopRateOne, r.Speed.LoopRateAll; r.Steady && one > mostFaster*all {
		off("a CPU is %.2f times as fast while no other is busy, more than %g", one/all, mostFaster)
	}
	if r.Speed.SleepLateUs > mostLateUs {
		off("a sleep of 1 ms ends %.0f us late, more than %d", r.Speed.SleepLateUs, mostLateUs)
	}
	if r.Speed.SwitchNs > mostSwitchNs {
		off("a switch takes %.0f us, more than %d", r.Speed.SwitchNs/1e3, mostSwitchNs/1000)
	}
	switch {
	case r.Others == nil:
		off("what others took of the host was not measured")
	case *r.Others > mostSteal:
		off("others had %.0f %% of the host's CPUs, more than %.0f %%", 100**r.Others, 100*mostSteal)
	}
	if k := float64(r.Factor); r.Pace != 0 && (r.Pace < k*(1-mostPaceOff) || r.Pace > k*(1+mostPaceOff)) {
		off("the guest's clock ran %.2f times slower, not %d", r.Pace, r.Factor)
	}
	result.OK = len(result.Off) == 0
	return result
}

// String is the line that ends a slowed run.
func (r Result) String() string {
	calibration := "ok"
	if !r.OK {
		calibration = "off: " + strings.Join(r.Off, "; ")
	}
	return fmt.Sprintf("slow: K=%d guest %.1f s host %.0f s calibration %s", r.Factor, r.GuestSeconds, r.HostSeconds, calibration)
}
