package recording_test

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

func limited(path string, id uint64, quota, burst time.Duration) recording.Level {
	return recording.Level{Path: path, ID: id, QuotaNS: new(quota.Nanoseconds()), PeriodNS: 1e8, BurstNS: burst.Nanoseconds()}
}

// A limit that changes while it is recorded is noticed: by the period's timer, also where it is back at the end, and by the levels at the
// end, which alone tell of a period's length and of a quota that is gone.
func TestLimitChanges(t *testing.T) {
	const ms = time.Millisecond
	own, pod := limited("/pod/app", 2, 30*ms, 0), limited("/pod", 1, 80*ms, 10*ms)
	unlimited := recording.Level{Path: "/", PeriodNS: 1e8}
	inside := limited("/pod/app/io", 3, 10*ms, 0)
	expiry := func(id uint64, quota, burst time.Duration) recording.Event {
		return recording.Event{AtNS: 21e8, Kind: recording.Period, Cgroup: id,
			Period: recording.PeriodState{QuotaNS: int64(quota), BurstNS: int64(burst)}}
	}
	shorter, gone := pod, own
	shorter.PeriodNS, gone.QuotaNS = 5e7, nil
	for _, tc := range []struct {
		name   string
		events []recording.Event
		end    []recording.Level
		want   string
	}{
		{"as it was", []recording.Event{expiry(2, 30*ms, 0), expiry(1, 80*ms, 10*ms)}, []recording.Level{own, pod, unlimited, inside}, ""},
		{"the end was not read", []recording.Event{expiry(2, 30*ms, 0)}, nil, ""},
		{"another cgroup's", []recording.Event{expiry(9, 60*ms, 0)}, nil, ""},
		{"raised", []recording.Event{expiry(2, 60*ms, 0)}, nil, "its limit changed from 0.3 to 0.6 CPUs, 2.1 s into the look"},
		{"there and back", []recording.Event{expiry(2, 60*ms, 0), expiry(2, 30*ms, 0)}, []recording.Level{own},
			"its limit changed from 0.3 to 0.6 CPUs, 2.1 s into the look"},
		{"lifted, by its timer", []recording.Event{expiry(2, math.MaxInt64, 0)}, nil,
			"its limit changed from 0.3 CPUs to none, 2.1 s into the look"},
		{"lifted, at the end", nil, []recording.Level{gone}, "its limit changed from 0.3 CPUs to none"},
		{"an ancestor's burst", []recording.Event{expiry(1, 80*ms, 20*ms)}, nil,
			`the limit of "/pod" changed in its burst, from 10ms to 20ms, 2.1 s into the look`},
		{"an ancestor's period", nil, []recording.Level{own, shorter}, `the limit of "/pod" changed from 0.8 to 1.6 CPUs`},
		{"below it", []recording.Event{expiry(3, 20*ms, 0)}, nil,
			`the limit of "/pod/app/io" changed from 0.1 to 0.2 CPUs, 2.1 s into the look`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := recording.NewLimitWatch(&recording.Header{Levels: []recording.Level{own, pod, unlimited},
				SubLevels: []recording.Level{inside}})
			for i := range tc.events {
				w.Add(&tc.events[i])
			}
			if got := recording.LimitsChanged("/pod/app", w.Finish(&recording.Footer{Levels: tc.end})); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestMadeAnewIsNoChangeOfALimit: another cgroup with the same path is told as that, whatever its limit.
func TestMadeAnewIsNoChangeOfALimit(t *testing.T) {
	quota := int64(100)
	was := recording.Level{Path: "/a", ID: 1, QuotaNS: &quota, PeriodNS: 200, BurstNS: 50}
	is := was
	for _, burst := range []int64{0, was.BurstNS} {
		is.ID, is.BurstNS = 2, burst
		text := recording.LimitsChanged("/a", recording.CompareLimits([]recording.Level{was}, []recording.Level{is}))
		if text != "it was made anew, in another cgroup of the same path" {
			t.Errorf("burst %d: %q", burst, text)
		}
	}
	is.ID, is.BurstNS = 0, was.BurstNS // not known
	if changes := recording.CompareLimits([]recording.Level{was}, []recording.Level{is}); len(changes) > 0 {
		t.Errorf("%+v", changes)
	}
}
