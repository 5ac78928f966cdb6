package features

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestKubelet(t *testing.T) {
	for name, c := range map[string]struct{ state, policy, given, fails string }{
		"static":   {state: `{"policyName":"static","defaultCpuSet":"0,4-7","entries":{"uid":{"web":"1-2","db":"3"}},"checksum":1}`, policy: "static", given: "1-3"},
		"oldest":   {state: `{"policyName":"static","defaultCpuSet":"0","entries":{"0123abc":"2-3"}}`, policy: "static", given: "2-3"},
		"none":     {state: `{"policyName":"none","entries":{"uid":{"web":"1-2"}}}`},
		"no file":  {},
		"broken":   {state: `{"policyName":`, fails: "unexpected format"},
		"strange":  {state: `{"policyName":"static","entries":{"uid":[1]}}`, policy: "static", fails: "unknown format"},
		"no list":  {state: `{"policyName":"static","entries":{"uid":{"web":"1-x"}}}`, policy: "static", fails: "1-x"},
		"long":     {state: `{"policyName":"` + strings.Repeat("x", 1000) + `"}`, fails: "a name of 1000 bytes"},
		"too long": {state: `{"policyName":"` + strings.Repeat("x", maxCheckpoint) + `"}`, fails: "cannot be read"},
	} {
		root := fstest.MapFS{}
		if c.state != "" {
			root[kubeletState] = &fstest.MapFile{Data: []byte(c.state)}
		}
		got, err := ReadKubelet(root)
		switch {
		case c.fails == "" && err != nil, c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: error %v, want %q", name, err, c.fails)
		case got.Policy != c.policy || err == nil && got.Given.String() != c.given:
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add([]byte(`{"policyName":"static","defaultCpuSet":"0","entries":{"uid":{"web":"1-2"}}}`))
	f.Add([]byte(`{"policyName":"static","entries":{"0123abc":"2-3"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := parseCheckpoint(data)
		if err == nil && !k.Given.IsEmpty() && k.Policy == "" || len(k.Policy) > maxPolicy {
			t.Errorf("CPUs %s of %q", k.Given, k.Policy)
		}
	})
}
