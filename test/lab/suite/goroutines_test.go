package suite

import (
	"context"
	"strings"
	"testing"
)

func TestGoroutines(t *testing.T) {
	needGo(t)
	const experiment = "package p\nimport (\n\t\"testing\"\n\t\"m/lab/require\"\n)\nfunc TestX(t *testing.T) { require.Root(); go func() {}() }\n"
	module(t, map[string]string{
		"quiet/q.go":              "package quiet\nimport _ \"sort\"\n",
		"quiet/q_test.go":         "package quiet\nimport \"testing\"\nfunc TestQ(t *testing.T) {}\n",
		"statement/s.go":          "package statement\nfunc F() { go F() }\n",
		"imports/i.go":            "package imports\nimport _ \"m/through\"\n",
		"through/t.go":            "package through\nimport _ \"m/statement\"\n",
		"server/s.go":             "package server\nimport _ \"net/http/httptest\"\n",
		"group/g.go":              "package group\nimport \"sync\"\nfunc F(w *sync.WaitGroup) { w.Go(func() {}) }\n",
		"command/c.go":            "package command\nimport \"os/exec\"\nfunc F() { exec.Command(\"true\").Stdin = nil }\n",
		"waits/w.go":              "package waits\nimport \"os/exec\"\nfunc F() { exec.Command(\"true\").Output() }\n",
		"looks/l.go":              "package looks\nimport \"os/exec\"\nfunc F() { exec.LookPath(\"true\") }\n",
		"parallel/p_test.go":      "package parallel\nimport \"testing\"\nfunc TestP(t *testing.T) { t.Parallel() }\n",
		"helper/h_test.go":        "package helper\nfunc f() { go f() }\n",
		"testimport/t_test.go":    "package testimport\nimport (\n\t\"testing\"\n\t_ \"m/statement\"\n)\nfunc TestT(t *testing.T) {}\n",
		"experiment/e_test.go":    experiment,
		"experiment/p_test.go":    "package p\nimport \"testing\"\nfunc TestP(t *testing.T) {}\n",
		"both/b_test.go":          experiment + "func TestY(t *testing.T) {}\n",
		"fuzzed/f_test.go":        experiment + "func FuzzY(f *testing.F) {}\n",
		"experiment/more_test.go": "package p\nimport \"m/lab/require\"\nfunc more() { require.Root(); go more() }\n",
	})
	with, without, err := Goroutines(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(with, " "); got != "m/both m/command m/fuzzed m/group m/helper m/imports m/parallel m/server m/statement m/testimport m/through" {
		t.Errorf("with goroutines: %s", got)
	}
	if got := strings.Join(without, " "); got != "m/experiment m/lab/require m/looks m/quiet m/waits" {
		t.Errorf("without: %s", got)
	}
}

func TestRepeating(t *testing.T) {
	needGo(t)
	module(t, map[string]string{
		"short/s_test.go":   "package short\nimport \"testing\"\nfunc TestS(t *testing.T) { if testing.Short() { return } }\n",
		"rounds/r_test.go":  "package rounds\nimport (\n\t\"testing\"\n\t\"m/lab/require\"\n)\nfunc TestR(t *testing.T) { for range require.Rounds() {} }\n",
		"kernel/k_test.go":  "package kernel\nimport (\n\t\"testing\"\n\t\"m/lab/require\"\n)\nfunc TestK(t *testing.T) { require.Root(); require.Rounds() }\n",
		"library/l_test.go": "package library\nimport _ \"pgregory.net/rapid\"\n",
		"plain/p.go":        "package plain\nimport \"testing\"\nfunc Short() bool { return testing.Short() }\n",
		"plain/p_test.go":   "package plain\nimport \"testing\"\nfunc TestP(t *testing.T) {}\n",
	})
	all := []string{"m/short", "m/rounds", "m/kernel", "m/library", "m/plain"}
	got, err := Repeating(context.Background(), all)
	if want := "m/library m/rounds m/short"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q, %v; want %s", got, err, want)
	}
	if got, err := Repeating(context.Background(), nil); len(got) != 0 || err != nil {
		t.Errorf("of no package: %q, %v", got, err)
	}
}
