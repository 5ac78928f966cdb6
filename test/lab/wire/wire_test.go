package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestFramesComeBack(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf)
	long := bytes.Repeat([]byte{'x', '\n'}, maxPayload)
	for _, err := range []error{
		w.JSON(Booted, 0, BootFacts{Release: "6.18"}),
		w.Write(Stdout, 3, long),
		w.Write(Done, 0, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(&buf)
	var got []Frame
	for {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f)
	}
	want := []Frame{
		{Booted, 0, []byte(`{"release":"6.18","uptime_sec":0}`)},
		{Stdout, 3, long[:maxPayload]}, {Stdout, 3, long[maxPayload:]},
		{Done, 0, []byte{}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %d frames, want %d", len(got), len(want))
	}
}

func TestReaderRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"stdout 0 99999\nx":         "up to 65536",
		"stdout 0 -1\n":             "up to 65536",
		"stdout -1 1\nx":            "step",
		"gossip 0 1\nx":             "want <kind>",
		"stdout 0\n":                "want <kind>",
		strings.Repeat("y", 100):    "longer than 64",
		"stdout 0 5\nhi":            io.ErrUnexpectedEOF.Error(),
		"stdout 0":                  io.ErrUnexpectedEOF.Error(),
		"stdout 0 9999999999999\nx": "up to 65536",
	} {
		if _, err := NewReader(strings.NewReader(in)).Next(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: got %v, want %q", in, err, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("stdout 0 3\nhi\nexit 0 10\n{\"code\":0}done 0 0\n"))
	f.Add([]byte("filename 1 1\na"))
	f.Add([]byte("stdout 0 70000\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in))
		used := 0
		for {
			frame, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) && strings.TrimSpace(err.Error()) == "" {
					t.Fatal("an error without words")
				}
				return
			}
			used += len(frame.Payload)
			if used > len(in) || len(frame.Payload) > maxPayload {
				t.Fatalf("%d bytes of payload out of %d", used, len(in))
			}
		}
	})
}
