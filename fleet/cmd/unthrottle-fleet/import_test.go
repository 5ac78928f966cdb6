package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// prometheus answers range queries: two containers that use CPU time, one of them under a limit that stops it. It wants
// a token.
func prometheus(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, start := r.FormValue("query"), r.FormValue("start")
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		from, err := time.Parse(time.RFC3339, start)
		if err != nil { // Prometheus takes seconds, too
			var s float64
			if _, err := fmt.Sscan(start, &s); err != nil {
				t.Errorf("start %q", start)
			}
			from = time.Unix(int64(s), 0)
		}
		one := func(pod string, v float64) string {
			var values []string
			for i := range 12 {
				values = append(values, fmt.Sprintf(`[%d,"%g"]`, from.Add(time.Duration(i)*5*time.Minute).Unix(), v))
			}
			return fmt.Sprintf(`{"metric":{"node":"n1","namespace":"shop","pod":%q,"container":"app"},"values":[%s]}`,
				pod, strings.Join(values, ","))
		}
		var all []string
		for part, v := range map[string][2]float64{"usage_seconds": {90, 3}, "cfs_periods": {3000, 3000},
			"throttled_periods": {600, 0}, "throttled_seconds": {60, 0}, "spec_cpu_quota": {0.5, 0}} {
			if strings.Contains(query, part) {
				all = append(all, one("cart-7d9c5b8f6-x2x4x", v[0]), one("idle-0", v[1]))
			}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, strings.Join(all, ","))
	}))
	t.Cleanup(s.Close)
	return s
}

// Counters become rows, and rows a report that tells who is stopped and sizes nothing.
func TestImport(t *testing.T) {
	s, dir := prometheus(t), t.TempDir()
	token, rows := filepath.Join(dir, "token"), filepath.Join(dir, "rows")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := []string{"import", s.URL, "--out", rows, "--until", "2026-03-04T05:10:00Z", "--for", "2h", "--cluster",
		"eu1", "--token-file", token}
	for range 2 { // again gives the same
		if out, err := called(t, call...); err != nil || !strings.Contains(out, "48 rows") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	out, err := called(t, "report", rows, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	d := validated(t, "fleet_report", out)
	services, _ := d["services"].([]any)
	if len(services) != 2 || d["containers"] != 2.0 || d["from"] != "2026-03-04T03:00:00Z" {
		t.Fatalf("%s", out)
	}
	cart, _ := services[0].(map[string]any)
	if cart["name"] != "shop/cart/app" || cart["stopped_share"] != 0.2 || cart["cores_now"] != 0.5 ||
		cart["cores_after"] != nil || cart["remedy"] != nil || cart["used_cpus"] != 0.3 {
		t.Errorf("%v", cart)
	}
}

// A tenant is asked for by a header, what a store says of itself is told, and an answer in part is none unless that is asked for.
func TestImportFromAStore(t *testing.T) {
	whole := `{"status":"success","data":{"resultType":"matrix","result":[]}}`
	var seen http.Header
	var form url.Values
	for name, c := range map[string]struct {
		code int
		body string
		args []string
		says []string
	}{
		"no tenant": {http.StatusUnauthorized, "no org id\x1b[2J\n", nil, []string{"no org id", "--token-file", "--header"}},
		"forbidden": {http.StatusForbidden, "<html>not you</html>", nil, []string{"not you", "--header"}},
		"too many": {http.StatusTooManyRequests, `{"status":"error","errorType":"too_many_requests","error":"the query rate is 3"}`, nil,
			[]string{"the query rate is 3", "--for"}},
		"too long":         {http.StatusUnprocessableEntity, `{"status":"error","errorType":"execution","error":"too many samples"}`, nil, []string{"too many samples"}},
		"a tenant":         {http.StatusOK, whole, []string{"--header", "X-Scope-OrgID: shop|web"}, []string{"does it scrape"}},
		"in part":          {http.StatusOK, strings.Replace(whole, `"data"`, `"isPartial":true,"data"`, 1), nil, []string{"in part", "--partial"}},
		"in part, allowed": {http.StatusOK, strings.Replace(whole, `"data"`, `"isPartial": true,"data"`, 1), []string{"--partial"}, []string{"does it scrape"}},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = r.Header
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			form = r.Form
			w.WriteHeader(c.code)
			fmt.Fprint(w, c.body)
		}))
		_, err := called(t, append([]string{"import", s.URL, "--out", t.TempDir(), "--for", "1h"}, c.args...)...)
		s.Close()
		for _, says := range c.says {
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%s: %v; want %q", name, err, says)
			}
		}
		allowed := len(c.args) > 0 && c.args[0] == "--partial"
		if got := form.Get("partial_response") + form.Get("deny_partial_response"); allowed != (got == "") ||
			!allowed && got != "false1" {
			t.Errorf("%s: asked with %q", name, got)
		}
		if tenant := seen.Get("X-Scope-OrgID"); (tenant == "shop|web") != (name == "a tenant") {
			t.Errorf("%s: tenant %q", name, tenant)
		}
	}
}

func TestImportMistakes(t *testing.T) {
	s, out := prometheus(t), filepath.Join(t.TempDir(), "rows")
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	}))
	defer empty.Close()
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"import"}, "give the Prometheus", 2},
		{[]string{"import", "n17:9090", "--out", out}, "is no address of a Prometheus", 2},
		{[]string{"import", s.URL}, "--out DIR", 2},
		{[]string{"import", s.URL, "--out", out, "--for", "90m"}, "whole hours", 2},
		{[]string{"import", s.URL, "--out", out, "--until", "yesterday"}, "give a moment as", 2},
		{[]string{"import", s.URL, "--out", out, "--node-label", "a b"}, "is no label's name", 2},
		{[]string{"import", s.URL, "--out", out, "--token-file", out}, "--token-file", 2},
		{[]string{"import", s.URL, "--out", out, "--header", "shop"}, "--header", 2},
		{[]string{"import", s.URL, "--out", out, "--header", "X-Scope-OrgID: a\nHost: b"}, "--header", 2},
		{[]string{"import", s.URL, "--out", out, "--for", "1h"}, "0 rows kept so far", 2},
		{[]string{"import", empty.URL, "--out", out, "--for", "1h"}, "does it scrape the kubelets'", 3},
	} {
		_, err := called(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.says) || exitCode(err, false) != c.code {
			t.Errorf("%q: %v; want %q", c.args, err, c.says)
		}
	}
}

// No message shows the password of an address.
func TestImportTellsNoPassword(t *testing.T) {
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	}))
	there := "http://u:hunter2@" + strings.TrimPrefix(empty.URL, "http://")
	ask := func() error {
		_, err := called(t, "import", there, "--out", t.TempDir(), "--for", "1h")
		return err
	}
	answered := ask()
	empty.Close()
	_, wrong := called(t, "import", "u:hunter2@n17", "--out", t.TempDir())
	for name, err := range map[string]error{"answered": answered, "gone": ask(), "no address": wrong} {
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
