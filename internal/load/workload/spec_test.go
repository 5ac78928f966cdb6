package workload

import (
	"testing"
	"time"
)

func TestBadSpecs(t *testing.T) {
	for _, s := range []Spec{
		{},
		{Burners: -1, Sleep: 10 * ms, Deadline: time.Second},
		{Burners: 99999, Sleep: 10 * ms, Deadline: time.Second},
		{Burners: 1, Sleep: 1, Deadline: time.Second},
		{Burners: 1, Sleep: 2 * time.Second, Deadline: time.Second},
		{Burners: 1, Sleep: 10 * ms},
		{Burners: 1, Sleep: 10 * ms, Deadline: 2 * time.Hour},
	} {
		if s.Check() == nil {
			t.Errorf("%+v is taken", s)
		}
		if p, err := Start("", s); err == nil {
			_ = p.Stop()
			t.Errorf("%+v was started", s)
		}
	}
	if err := (Spec{Burners: MaxBurners, Sleep: MaxSleep, Deadline: MaxDeadline}).Check(); err != nil {
		t.Error(err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(make([]byte, recordBytes))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) != recordBytes {
			return
		}
		from := [recordBytes]byte(data)
		r, err := decodeRecord(&from)
		if err != nil {
			return
		}
		if r.Start < 0 || r.Took < 0 || r.End() < r.Start {
			t.Fatalf("impossible times: %+v", r)
		}
		var to [recordBytes]byte
		if r.encode(&to); to != from {
			t.Fatalf("%x came back as %x", from, to)
		}
	})
}
