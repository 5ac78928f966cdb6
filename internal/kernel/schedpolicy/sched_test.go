package schedpolicy

import (
	"testing"
)

func TestPolicyText(t *testing.T) {
	for text, want := range map[string]Policy{
		"other": Other, "rr 1": Realtime, "fifo 99 reset_on_fork": {"fifo", 99, true}, "idle reset_on_fork": {"idle", 0, true},
	} {
		if got, err := Parse(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "rr", "rr 0", "rr 100", "rr 1 2", "other 1", "reset_on_fork", "nonsense", "rr -1"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
	kept := Policy{"other", 0, true}.As(Realtime)
	if !kept.Same(Realtime) || kept == Realtime || kept.Same(Other) || !kept.BeforeOthers() || Other.BeforeOthers() {
		t.Errorf("%+v", kept)
	}
}

func TestThreadNames(t *testing.T) {
	if tid, ok := Thread(File(17)); !ok || tid != 17 {
		t.Error(tid, ok)
	}
	for _, bad := range []string{Rest, "thread/", "thread/0", "thread/-1", "thread/017", "thread/1/2", "17", "thread/99999999999"} {
		if _, ok := Thread(bad); ok {
			t.Errorf("%q names a thread", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"other", "rr 1", "fifo 99 reset_on_fork", "rr 256", " "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if back, err := Parse(p.String()); err != nil || back != p {
			t.Fatalf("%q: %+v became %+v, %v", text, p, back, err)
		}
	})
}
