package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
)

// hash stands for every hash in what tests want.
var hash = regexp.MustCompile(`h-[0-9a-f]{8}`)

func shape(text string) string { return hash.ReplaceAllString(text, "H") }

// The name of a cgroup may be any bytes; texts have those that are not UTF-8 escaped.
func TestANameThatIsNotUTF8(t *testing.T) {
	r := NewRedactor("salt", []string{"shop\xff"}, false)
	if got := shape(r.Text(`cgroup "/shop\xff" has ended, and so has shop\xff of it`)); got != `cgroup "/H" has ended, and so has H of it` {
		t.Error(got)
	}
}

func TestText(t *testing.T) {
	r := NewRedactor("salt", []string{"checkout", "pod12ab", "self", "a", ""}, false)
	for in, want := range map[string]string{
		"cgroup /kubepods/burstable/pod12ab: gone":                             "cgroup /kubepods/burstable/H: gone",
		"/sys/fs/cgroup/cpu/shop/checkout/cpu.cfs_quota_us: permission denied": "/sys/fs/cgroup/cpu/H/H/cpu.cfs_quota_us: permission denied",
		"/sys/fs/cgroup/cpu is not writable: run as root":                      "/sys/fs/cgroup/cpu is not writable: run as root",
		"/sys/fs/cgroup/system.slice/my-db.service/cpu.max":                    "/sys/fs/cgroup/system.slice/H.service/cpu.max",
		"open /home/alice/rules.yaml: no such file":                            "open /H/H/H: no such file",
		"open /var/lib/unthrottle/journal.jsonl: permission denied":            "open /var/lib/unthrottle/journal.jsonl: permission denied",
		"/proc/irq/default_smp_affinity: permission denied: run as root": "/proc/irq/default_smp_affinity: " +
			"permission denied: run as root",
		"container checkout is stopped": "container H is stopped",
		"listen tcp 10.1.2.3:9469: in use; listen tcp 127.0.0.1:9469": "listen tcp (address):9469: in use; " +
			"listen tcp 127.0.0.1:9469",
		"listen tcp [2001:db8::1]:9469: in use; fe80::1: no route; [::1]:9469": "listen tcp [(address)]:9469: in " +
			"use; (address): no route; [::1]:9469",
		"2026-11-23T06:12:07.411Z at 06:12:07: late":            "2026-11-23T06:12:07.411Z at 06:12:07: late",
		`slo command "/opt/x": exit status 1: password hunter2`: "slo command (left out)",
		"the kernel refuses to load the probe's BPF programs":   "the kernel refuses to load the probe's BPF programs",
	} {
		if got := shape(r.Text(in)); got != want {
			t.Errorf("%q\nis   %q,\nwant %q", in, got, want)
		}
	}
	if r.Path("/shop/checkout") != "/"+r.Name("shop")+"/"+r.Name("checkout") || r.Name("shop") == r.Name("shop2") {
		t.Error("one name has one hash")
	}
	if NewRedactor("other", nil, false).Name("shop") == r.Name("shop") {
		t.Error("another report has the same hash")
	}
	open := NewRedactor("salt", []string{"checkout"}, true)
	if got := open.Text("/shop/checkout: slo command x from 10.1.2.3"); got != "/shop/checkout: slo command (left out)" {
		t.Errorf("with names: %q", got)
	}
}

func TestLog(t *testing.T) {
	r := NewRedactor("salt", nil, false)
	in := `time=2026-11-23T06:12:07.411Z level=WARN msg="not fixed" container="cart one" cgroup=/docker/0123abc stopped_per_second_low=0.8 by=self why="slo command \"/opt/p\": x secret"` + "\n"
	want := `time=2026-11-23T06:12:07.411Z level=WARN msg="not fixed" container=H cgroup=/docker/H stopped_per_second_low=0.8 by=self why="slo command (left out)"` + "\n"
	if got := shape(r.Log(in)); got != want {
		t.Errorf("%q, want\n%q", got, want)
	}
}

func TestConfig(t *testing.T) {
	r := NewRedactor("salt", nil, false)
	got := shape(r.Config([]byte(`# hunter2 in a comment
version: 1
listen: 10.1.2.3:9469
scope: /kubepods.slice/team
own_budget: {cpu: 1%}
hunter2: hunter2
rules:
- match: {name: "hunter2*", cgroup: /hunter2/**, labels: {hunter2: hunter2}}
  slo: {objective: p99<20ms, command: "curl -H hunter2"}
  remedy: narrow
  via: sched_ext
  credit: 2s
  may: [raise]
`)))
	for _, want := range []string{"version: 1\n", "listen: (address):9469\n", "scope: /kubepods.slice/H\n", "cpu: 1%\n", "H: (left out)\n",
		"name: H\n", "cgroup: /H/H\n", "labels: (1 left out)\n", "objective: p99<20ms\n", "command: (left out)\n",
		"- raise\n", "via: sched_ext\n", "credit: 2s\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "hunter2") {
		t.Errorf("private:\n%s", got)
	}
	if got := r.Config([]byte("a: [hunter2")); strings.Contains(got, "hunter2") || !strings.Contains(got, "no YAML") {
		t.Errorf("no YAML: %q", got)
	}
}

func TestJournal(t *testing.T) {
	r := NewRedactor("salt", nil, false)
	in := `{"header":{"version":1,"created":"2026-11-23T05:00:00Z"}}
{"begin":{"txn":"20261123-1","by":"unthrottle fix, user root for alice","boot":"1234-5678","target":"/shop/checkout","name":"checkout","remedy":"pin","parameters":{"cpus":"1","to":"/x"},"holds":[{"kind":"file","controller":"cpu","path":"/shop/checkout","file":"cpu.cfs_quota_us","cgroup_id":77,"to":"-1","original":"50000","why":"quota of /shop/checkout off"}]}}
{"done":{"n":1,"value":"0-3,7","error":"write /sys/fs/cgroup/cpu/shop/x: busy"}}
{"begin":{"txn":"2","target":"/","unit":"alice.service","holds":[{"to":"alice","original":""}]}}
alice was here
`
	got := r.Journal([]byte(in), 4)
	for _, private := range []string{"alice", "shop", "checkout", "1234-5678"} {
		if strings.Contains(got, private) {
			t.Errorf("%s in\n%s", private, got)
		}
	}
	for _, want := range []string{`"by":"unthrottle fix"`, `"remedy":"pin"`, `"cpus":"1"`, `"to":"(left out)"`,
		`"cgroup_id":77`, `"original":"50000"`,
		`"file":"cpu.cfs_quota_us"`, `"value":"0-3,7"`, `"earlier_records":1`, `"lines_that_are_no_record":1`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
}

// Texts may name a container that has ended: the journal still knows it.
func TestJournalNames(t *testing.T) {
	in := `{"crc":"1","rec":{"begin":{"txn":"1","target":"/shop/checkout","name":"till","holds":[{"path":"/shop/pay","why":"quota"}]}}}` + "\nno record\n"
	names := JournalNames([]byte(in))
	if got := NewRedactor("salt", names, false).Text("till of shop: pay has ended, checkout too"); shape(
		got) != "H of H: H has ended, H too" {
		t.Errorf("%v: %q", names, got)
	}
}

func TestPack(t *testing.T) {
	files := []File{{Name: "a.txt", Text: "one\n"}, File{Name: "b.txt", Text: strings.Repeat("x", 2*maxFile)}.Bounded()}
	var packed, shown bytes.Buffer
	if err := errors.Join(Pack(&packed, "report", files, time.Unix(0, 0)), Show(&shown, files)); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for _, f := range files {
		h, err := r.Next()
		if err != nil || h.Name != "report/"+f.Name || h.Mode != 0o600 {
			t.Fatalf("%+v, %v", h, err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != f.Text ||
			!strings.Contains(shown.String(), strings.TrimSpace(f.Text)) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(text), err)
		}
	}
	if !strings.Contains(files[1].Text, "bytes more are left out") {
		t.Error("a long text is cut in silence")
	}
}

// Of a log that is too long the newest lines stay, each whole.
func TestTheNewestLinesStay(t *testing.T) {
	for name, c := range map[string]struct{ text, begins, ends string }{
		"lines":        {strings.Repeat("an old line\n", maxFile/10) + "the newest\n", "an old line\n", "an old line\nthe newest\n"},
		"one line":     {strings.Repeat("x", 2*maxFile), "xx", "xx"},
		"its last one": {strings.Repeat("x", 2*maxFile) + "\n", "xx", "xx\n"},
	} {
		said, rest, _ := strings.Cut(File{Text: c.text, NewestLast: true}.Bounded().Text, "\n")
		if !strings.Contains(said, "are left out") || !strings.HasPrefix(rest, c.begins) || !strings.HasSuffix(rest, c.ends) ||
			len(rest) > maxFile {
			t.Errorf("%s: %q, then %d bytes: %.40q", name, said, len(rest), rest)
		}
	}
	if f := (File{Text: "short\n", NewestLast: true}); f.Bounded() != f {
		t.Errorf("%+v", f.Bounded())
	}
}

// What is cleared has none of the known names, whatever stands around them.
func FuzzText(f *testing.F) {
	f.Add("cgroup /a/hunter2/b: hunter2", "salt")
	f.Add(`slo command "hunter2`, "")
	f.Fuzz(func(t *testing.T, text, salt string) {
		r := NewRedactor(salt, []string{"hunter2"}, false)
		if got := r.Text(text); strings.Contains(got, "hunter2") {
			t.Errorf("%q keeps the name", got)
		}
	})
}
