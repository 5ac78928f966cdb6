package bandwidth

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A limit in another period has whole units, is less than a unit below what it was and never above it, and only a quota below
// the kernel's least is refused. As CPUs it is the same limit.
func TestInAnotherPeriodItIsTheSameLimit(t *testing.T) {
	rules, err := For("6.12")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		units := func(name string, least, most int64) time.Duration {
			return time.Duration(rapid.Int64Range(least, most).Draw(t, name)) * Unit
		}
		l := Limit{Quota: units("quota", 1_000, 1_000_000_000), Period: units("period", 1_000, 1_000_000)}
		l.Burst = units("burst", 0, int64(l.Quota/Unit))
		in := l.In(units("other period", 1_000, 1_000_000))
		if refused := in.Check(&rules); (refused != nil) != (in.Quota < MinQuota) {
			t.Fatalf("%+v in %v is %+v: %v", l, in.Period, in, refused)
		}
		was := new(big.Int).Mul(big.NewInt(int64(l.Quota)), big.NewInt(int64(in.Period)))
		is := new(big.Int).Mul(big.NewInt(int64(in.Quota)), big.NewInt(int64(l.Period)))
		off := was.Sub(was, is) // of the quota, in units of the old period
		if off.Sign() < 0 || off.Cmp(big.NewInt(int64(Unit)*int64(l.Period))) >= 0 {
			t.Fatalf("%+v in %v is %+v", l, in.Period, in)
		}
		if quota := QuotaOf(l.CPUs(), l.Period); quota != l.Quota {
			t.Fatalf("%v CPUs are %v in %v, not %v", l.CPUs(), quota, l.Period, l.Quota)
		}
	})
}

func TestPartsOfAUnitAreRefused(t *testing.T) {
	rules, err := For("6.12")
	if err != nil {
		t.Fatal(err)
	}
	whole := Limit{Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond, Burst: 10 * time.Millisecond}
	if refused := whole.Check(&rules); refused != nil {
		t.Fatal(refused)
	}
	for setting, part := range map[string]func(*Limit){
		"quota":  func(l *Limit) { l.Quota++ },
		"period": func(l *Limit) { l.Period-- },
		"burst":  func(l *Limit) { l.Burst += 500 },
	} {
		l := whole
		if part(&l); l.Check(&rules) == nil || l.Check(&rules).Setting != setting {
			t.Errorf("%s: %v", setting, l.Check(&rules))
		}
	}
	if free := (Limit{Quota: NoQuota, Period: 100 * time.Millisecond}).In(time.Second); free.Limited() || free.Period != time.Second {
		t.Errorf("without a quota: %+v", free)
	}
}
