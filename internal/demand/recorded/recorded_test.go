package recorded

import (
	"reflect"
	"strings"
	"testing"
)

func some() File {
	var f File
	f.About, f.ReplayedCPUs = "made up", 16
	for _, kind := range []string{"web server", "cache", "queue", "cache"} {
		f.Put(Service{Kind: kind, Date: "2026-01-05", Kernel: "6.18", RecordedCPUs: 2, PeriodUS: 100_000,
			WorkUS: []int64{0, 310_000}, Width: []int32{0, int32(len(kind))}})
	}
	return f
}

func TestWrittenIsRead(t *testing.T) {
	f := some()
	text, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines != 7 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	read, err := Decode(text)
	if err != nil || !reflect.DeepEqual(read, f) || len(read.Services) != 3 {
		t.Errorf("%+v, %v", read, err)
	}
	if s := read.Services[0]; s.Kind != "cache" || s.CPUs() != 1.55 {
		t.Errorf("%+v: %v CPUs", s, s.CPUs())
	}
}

func TestWhatMakesNoSense(t *testing.T) {
	for what, spoil := range map[string]func(f *File){
		"no kind":         func(f *File) { f.Services[0].Kind = "" },
		"a long kind":     func(f *File) { f.Services[2].Kind = strings.Repeat("w", MaxKind+1) },
		"order":           func(f *File) { f.Services[0], f.Services[1] = f.Services[1], f.Services[0] },
		"twice":           func(f *File) { f.Services[0].Kind = f.Services[1].Kind },
		"a period":        func(f *File) { f.Services[0].PeriodUS = 1 },
		"no periods":      func(f *File) { f.Services[0].WorkUS, f.Services[0].Width = nil, nil },
		"a width less":    func(f *File) { f.Services[0].Width = f.Services[0].Width[:1] },
		"work below none": func(f *File) { f.Services[0].WorkUS[0] = -1 },
		"more than fits":  func(f *File) { f.Services[0].WorkUS[1] = 500_001 },
		"wide":            func(f *File) { f.Services[0].Width[0] = MaxWidth + 1 },
		"many":            func(f *File) { f.Services = make([]Service, MaxServices+1) },
	} {
		f := some()
		spoil(&f)
		if _, err := f.Encode(); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	for _, text := range []string{"", "{", `{"services": 1}`, `{"host": "a"}`} {
		if f, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, f)
		}
	}
}
