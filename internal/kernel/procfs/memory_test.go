package procfs

import (
	"testing"
	"testing/fstest"
)

func TestReadMemTotal(t *testing.T) {
	for text, want := range map[string]int64{"MemTotal:       16303236 kB\nMemFree: 1 kB\n": 16303236 << 10,
		"MemFree: 1 kB\nMemTotal: 1 kB": 1 << 10,
		"":                              0, "MemFree: 1 kB\n": 0, "MemTotal: x kB\n": 0, "MemTotal: -1 kB\n": 0,
		"MemTotal: 9999999999999999 kB\n": 0} {
		got, err := ReadMemTotal(fstest.MapFS{"meminfo": &fstest.MapFile{Data: []byte(text)}})
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if _, err := ReadMemTotal(fstest.MapFS{}); err == nil {
		t.Error("read where there is none")
	}
}
