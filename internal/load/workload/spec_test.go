package workload

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSpecAsArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Spec{
			Burners:  rapid.IntRange(0, MaxBurners).Draw(t, "burners"),
			Sleep:    time.Duration(rapid.Int64Range(int64(MinSleep), int64(MaxSleep)).Draw(t, "sleep")),
			Deadline: time.Duration(rapid.Int64Range(1, int64(MaxDeadline)).Draw(t, "deadline")),
		}
		if got, err := parseSpec(want.args()); err != nil || got != want {
			t.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
	})
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--burners=x"},
		{"--burners=1", "--sleep=10ms", "--deadline=1s", "more"},
		{"--burners=-1", "--sleep=10ms", "--deadline=1s"},
		{"--burners=99999", "--sleep=10ms", "--deadline=1s"},
		{"--burners=1", "--sleep=1ns", "--deadline=1s"},
		{"--burners=1", "--sleep=2s", "--deadline=1s"},
		{"--burners=1", "--sleep=10ms", "--deadline=0s"},
		{"--burners=1", "--sleep=10ms", "--deadline=2h"},
		{"--unknown"},
	} {
		if s, err := parseSpec(args); err == nil {
			t.Errorf("%q: taken as %+v", args, s)
		}
		if code := ChildMain(args); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
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
