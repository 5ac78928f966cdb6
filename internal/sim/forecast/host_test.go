package forecast

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// A recorded level has the burst that the kernel said, also where there is no quota: the kernel takes that, and it has no effect.
func TestLimitIsAsRecorded(t *testing.T) {
	for _, c := range []struct {
		quota *int64
		want  time.Duration
	}{{nil, bandwidth.NoQuota}, {new(int64(50 * time.Millisecond)), 50 * time.Millisecond}} {
		at := recording.Level{QuotaNS: c.quota, PeriodNS: int64(200 * time.Millisecond), BurstNS: int64(20 * time.Millisecond)}
		limit := limitOf(&at)
		if want := (bandwidth.Limit{Quota: c.want, Period: 200 * time.Millisecond, Burst: 20 * time.Millisecond}); limit != want {
			t.Errorf("%+v, want %+v", limit, want)
		}
		if err := limit.CheckBounds(); err != nil {
			t.Error(err)
		}
	}
}
