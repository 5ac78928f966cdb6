package topology

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseList(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"\n", ""}, {"0\n", "0"}, {"0-3", "0-3"}, {"0-3,8\n", "0-3,8"}, {"8,0-3", "0-3,8"},
		{"3,3,2-4", "2-4"}, {"0-7:2/4", "0-1,4-5"}, {"1-9:1/3", "1,4,7"}, {"5-5", "5"}, {"5:1/1", "5"}, {"8191", "8191"},
		{" 1-2 ", "1-2"}, {"007", "7"},
	} {
		got, err := ParseList(c.in)
		if err != nil || got.String() != c.want {
			t.Errorf("ParseList(%q) = %v, %v; want %s", c.in, got, err, c.want)
		}
	}
}

func TestParseListRefuses(t *testing.T) {
	for _, c := range []struct{ in, names string }{
		{"a", `"a" is no number`}, {"1,,2", "missing"}, {",", "missing"}, {"1-", "missing"}, {"-1", "missing"},
		{"3-1", `"3-1" runs backwards`},
		{"8192", "8191"}, {"0-99999999999999999999", "8191"}, {"0-7:2", `"2" is no used/size`}, {"0-7:0/4", "from 1"},
		{"0-7:5/4", "from 1"}, {"0-7:1/0", "from 1"}, {"1 2", `"1 2"`}, {"0x3", "no number"}, {"\x00\x1b[2J", `\x00`}, {"٣", "no number"},
		{strings.Repeat("z", 5000), `"...`},
	} {
		_, err := ParseList(c.in)
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("ParseList(%.20q): error %v does not name %s", c.in, err, c.names)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("ParseList(%.20q): an error of %d bytes", c.in, len(err.Error()))
		}
	}
}

// TestParseListLongest reads the longest list that there is: every second CPU.
func TestParseListLongest(t *testing.T) {
	var b strings.Builder
	for id := 0; id < MaxCPUs; id += 2 {
		fmt.Fprintf(&b, "%d,", id)
	}
	got, err := ParseList(strings.TrimSuffix(b.String(), ","))
	if err != nil || got.Size() != MaxCPUs/2 {
		t.Fatalf("%d CPUs, %v", got.Size(), err)
	}
	if b.Len() > maxFileBytes {
		t.Fatalf("%d bytes do not fit a file of %d", b.Len(), maxFileBytes)
	}
}

func FuzzParseList(f *testing.F) {
	for _, s := range []string{"0-3,8", "", "\n", "0-7:2/4", "3-1", "8192", "1,,2", "0-8191:1/2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		set, err := ParseList(s)
		if err != nil {
			return
		}
		for _, id := range set.UnsortedList() {
			if id < 0 || id >= MaxCPUs {
				t.Fatalf("%q: CPU %d", s, id)
			}
		}
		again, err := ParseList(set.String())
		if err != nil || !again.Equals(set) {
			t.Fatalf("%q: %s reads as %s, %v", s, set, again, err)
		}
	})
}
