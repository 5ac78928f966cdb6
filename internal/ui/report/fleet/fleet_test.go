package fleet

import (
	"html"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func document() Document {
	return Document{
		From: noon,
		Now:  time.Date(2026, 11, 25, 12, 54, 0, 0, time.UTC), Until: noon.Add(time.Hour),
		Bound: 0.001, Containers: 3, ByBounds: 2, Hosts: 2,
		Ledger: Ledger{CoresNow: 24, CoresAfter: 11.1, Rounding: 0.3, Saved: 12.9, SavedLow: 12, SavedHigh: 22.8},
		Services: []Service{
			{Name: "cart/app", Containers: 2, CoresNow: new(16.0), CoresAfter: new(7.4), CoresAfterLow: new(0.8),
				CoresAfterHigh: new(8.0), Limit: new(3.7), Remedy: new(Lower), RunnablePerCore: new(0.13),
				ContendedShareLow: new(0.07), ContendedShare: new(0.09), Half: &Shards{1, 4.2, 4.2, 3.6, 7.4},
				OverHosts: &Spread{Hosts: 3, Shards: 5, Stopped: &Range{3, 0, 0.012, 0.34, "eu1/n\x1b[7"}},
				OverShards: &Spread{Hosts: 3, Shards: 5, Contended: &Range{5, 0, 0, 0.89, "eu1/n7/<b>"},
					RequestP99: &Range{4, 12, 14, 81, "eu1/n8/cart-0"}},
				Double: &Shards{4, 2.5, 10, 7.4, 14.8}},
			{Name: "<script>\u202e", Containers: 1, CoresNow: new(8.0), CoresAfter: new(8.0), CoresAfterLow: new(0.4),
				CoresAfterHigh: new(8.0), Remedy: new(Leave), RunnablePerCore: new(12.5),
				StoppedShare: new(0.25), StopP50: new(49.152), StopP99: new(98.304), StoppedBy: new("pod"), SpentBy: new("cart/app")},
			{Name: "", Containers: 1, Unknown: 1},
		},
		Defaults: Defaults{Containers: 2, More: 7, Pools: []Default{
			{Pool: new("netty-nio"), Library: new("Netty's NIO event loop"), Setting: new("-Dio.netty.eventLoopThreads"), Services: 1,
				Containers: 2, Threads: 256, Runnable: 9, RunnableP99: 4, RunnableMost: 5, TooMany: new(int64(248)),
				DefaultCPUs: new(64), BeyondLimit: 2},
			{Name: new("<b>\u202ebus-*"), Services: 1, Containers: 1, Threads: 128, Runnable: 2, RunnableMost: 2},
			{Name: new("none too many"), Services: 1, Containers: 1, Threads: 3, Runnable: 3, RunnableMost: 3}}},
		Applied: []Applied{{Remedy: "burst", Containers: 1, StoppedBefore: new(0.1), StoppedAfter: new(0.0), Promised: 1,
			SavedPromised: new(1040.0), SavedLow: new(900.0), SavedHigh: new(1100.0), Came: new(980.0), Compared: 40, Worse: 3,
			RequestP99Before: new(21.0),
			Days: []AppliedDay{{Day: 0, Containers: 9, StoppedShare: 0.077},
				{Day: DaysOfApplied, Containers: 5, Cores: new(33.3)}}}},
		Unknown: []Unknown{{Reason: "no limit of its own", Containers: 1}},
		Input: Input{GoneAfter: 15 * time.Minute, Refused: []Refused{{"/a\x1b/b.parquet", "cut off"}},
			Problems: []Problem{{"it is not of five minutes", 2, "/c.parquet", 4}}, Copies: 1},
	}
}

// What is not known is shown as such, and each order has its services.
func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, document(), page.Style{Width: 160}); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	for _, want := range []string{"3 containers of 3 services on 2 hosts at 12:54, rows of 2026-11-25 12:00 to 2026-11-25 13:00 UTC " +
		"(1 h)", "now 24.0, after 11.1: 12.9 saved, between 12.0 and 22.8",
		"fragmentation of exclusive CPUs is not known", "nothing is kept for hosts that fail (--failover 1 keeps it)",
		"7.0 %", "0.0 %, 1.2 %, 34.0 %", "eu1/n\\x1b[7", "0.0 %, 0.0 %, 89.0 %", "12 ms, 14 ms, 81 ms", "3.6-7.4", "7.4-14.8",
		"time to work than now, or than 0.1 %", "Rows of 2 containers have no periods", "0.8-8.0", "25.0 %", "98 ms",
		"-Dio.netty.eventLoopThreads", "64 CPUs", "threads <b>\\u202ebus-*", "248", "and 7 more",
		"From recordings of 2 of 3 containers", "1040.0  900.0-1100.0  980.0  3 of 40", "21 ms", "7.7 %", "later",
		"1 container with 0.0 cores: no limit of its own", "/a\\x1b/b.parquet: cut off",
		"2 rows, the first is row 4 of /c.parquet: it is not of five minutes", "1 copy of a row"} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	saves, rest, _ := strings.Cut(s, "Most runnable")
	runnable, stopped, _ := strings.Cut(rest, "Stopped most")
	if strings.Contains(saves, "script") || strings.Index(runnable, "script") > strings.Index(runnable, "cart/app") ||
		!strings.Contains(stopped, "script") {
		t.Errorf("the orders:\n%s", s)
	}
}

// Where recordings tell what remedies need, the ledger is by remedy, and says what each asks for and of how much of the
// fleet that is known; elsewhere none of that is there.
func TestByRemedy(t *testing.T) {
	d := document()
	shown := func() []string {
		var text, web strings.Builder
		if err := Write(&text, d, page.Style{Width: 800}); err != nil {
			t.Fatal(err)
		}
		if err := HTML(&web, d, webpage.Origin{}); err != nil {
			t.Fatal(err)
		}
		return []string{text.String(), html.UnescapeString(tags.ReplaceAllString(web.String(), " "))}
	}
	for _, s := range shown() {
		if strings.Contains(s, byRemedyTitle) || strings.Contains(s, pricesTitle) || strings.Contains(s, "same p99") {
			t.Errorf("without prices:\n%s", s)
		}
	}
	d.Priced = 2
	d.ByRemedy = []ByRemedy{
		{Remedy: Narrow, Asks: AsksNode, Priced: true, Services: 1, Containers: 2, CoresNow: 16, CoresAfter: 4.2, Saved: 11.8, SavedLow: 3,
			SavedHigh: 12.5, Rounding: new(0.1)},
		{Remedy: Lower, Asks: AsksLimit, Services: 1, Containers: 1, CoresNow: 8, CoresAfter: 6.9, Saved: 1.1},
	}
	d.Services[0].Priced = 2
	d.Services[0].Prices = []Price{{Remedy: Narrow, CoresNow: 16, CoresAfter: 4.2}, {Remedy: Pin, CoresNow: 16, CoresAfter: 6}}
	d.Services[0].JudgedOf, d.Services[0].JudgedQuantile, d.Services[0].JudgedMS = new("work\x1ber"), new(0.99), new(20.0)
	d.Services[0].Objective = &Objective{Quantile: 0.99, MS: 20, Cores: 10.4, CoresLow: 10, Slack: 0.35}
	for _, s := range shown() {
		for _, want := range []string{"p99<20ms", "35 %", "ores at the same p99, and at the same stops where",
			"2 of 3 containers with 16.0 of the cores", "11.8", "3.0-12.5",
			"limit: another limit of the workload", "node: a setting on the node", `p99 of work\x1ber, 20 ms`, "keeps the p99 within 5 %",
			objectiveTitle} {
			if !strings.Contains(s, want) {
				t.Errorf("no %q in\n%s", want, s)
			}
		}
		if strings.Contains(s, AsksCode+": ") || strings.Count(s, "An estimate") != 1 {
			t.Errorf("%s", s)
		}
	}
}

// Money is told where a price was given, and of how many cores it is not known.
func TestMoneyIsTold(t *testing.T) {
	d := document()
	d.Ledger.PerMonth, d.CoresWithoutPrice = &PerMonth{70080, 37668, 350.4, 66576}, 3
	d.Services[0].PerMonth = &PerMonth{Saved: 512.345}
	var b strings.Builder
	if err := Write(&b, d, page.Style{Width: 240}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in a month of 730 h 70080, of which 37668 is saved, between 350.40 and 66576; " +
		"3.0 cores are on nodes without a price", "SAVED A MONTH", "512.35, 0.00-0.00"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	var plain strings.Builder
	if err := Write(&plain, document(), page.Style{Width: 240}); err != nil || strings.Contains(plain.String(), "MONTH") {
		t.Errorf("%v, money without a price:\n%s", err, plain.String())
	}
}

// What is kept for hosts that fail is told, and for whom nothing helps.
func TestFailoverIsTold(t *testing.T) {
	d := document()
	d.FailoverHosts, d.FailoverNone, d.Ledger.Failover = 1, 2, new(3.25)
	want := "headroom for any one host that fails takes 3.2; 2 services have no " +
		"more hosts than that: enough is kept for one host that is left"
	if got := ledger(d); got[len(got)-1] != want {
		t.Errorf("%q", got)
	}
	if d.FailoverHosts, d.FailoverNone = 2, 0; ledger(d)[3] != "headroom for 2 hosts that fail takes 3.2" {
		t.Errorf("%q", ledger(d))
	}
}

// Where more hosts' rows end long before, the moment of these is proposed.
func TestMostHostsAreTold(t *testing.T) {
	in := Input{GoneAfter: 15 * time.Minute, HostsGone: 3, ContainersGone: 7,
		Most: &Most{3, time.Date(2026, 11, 25, 11, 59, 59, 7, time.UTC)}}
	if line := gone(in); !strings.Contains(line, "The rows of 3 hosts end by 2026-11-25 11:59") ||
		!strings.HasSuffix(line, "--until 2026-11-25T12:00:00Z") {
		t.Errorf("%q", line)
	}
}

// A plan says what moves, what stays and why, and how much more there is.
func TestWritePlan(t *testing.T) {
	d := Plan{Risk: 0.0001, Containers: 40, Secondaries: 3, HostsNow: 30, Hosts: 10, LowerBound: 9, Moves: 20,
		OverNow: 2, Over: 1, HostsUnknown: 1, ContainersUnknown: 3,
		Stay: []Stay{{"its memory is not known", 2}}, Input: document().Input}
	for range 20 {
		d.Emptied = append(d.Emptied, Host{"eu1", "n\x1b7"})
		d.MoveList = append(d.MoveList, Move{Service: "<b>\u202e", Pod: "cart-1", From: "a", To: "b"})
	}
	var b strings.Builder
	if err := WritePlan(&b, d, page.Style{Width: 160}); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	for _, want := range []string{"40 containers on 30 hosts now, on 10 hosts with 20 moves; every plan needs at " +
		"least 9", "more than 0.01 % of the time, or more memory: 2 now, 1 with the plan",
		"2 containers: its memory is not known", "3 containers are secondaries",
		"3 containers on 1 host whose CPUs or memory are not known", "cart-1", "/c.parquet"} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if strings.Count(s, "and 5 more") != 2 || strings.ContainsAny(s, "\x1b\u202e") {
		t.Errorf("%q", s)
	}
}

func TestPercent(t *testing.T) {
	for want, v := range map[string]*float64{"-": nil, "0.0 %": new(0.0), "<0.1 %": new(0.0001), "0.1 %": new(0.001),
		"12.5 %": new(0.125)} {
		if got := percent(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// The page has what the text has, loads nothing and runs its own script alone.
func TestHTML(t *testing.T) {
	for _, d := range []Document{document(), {}} {
		var b strings.Builder
		if err := HTML(&b, d, webpage.Origin{Version: "test"}); err != nil {
			t.Fatal(err)
		}
		s, own, _ := strings.Cut(b.String(), "<script>"+pageScript+"</script>")
		if s += own; own == "" {
			t.Error("no script in the page")
		}
		for _, never := range []string{"<script", "http://", "https://", "url(", "src=", "href=", "ZgotmplZ", "NaN",
			"Inf", "\x1b", "\u202e"} {
			if strings.Contains(s, never) {
				t.Errorf("%q in the page", never)
			}
		}
		if d.Containers == 0 {
			continue
		}
		shown := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(s, " "))), " ")
		for _, want := range []string{"12.9 saved, between 12.0 and 22.8", "3 containers of 3 services", "<script>",
			"cart/app", "Netty's NIO event loop", "threads <b>", "What remedies did", "burst", "21 ms", "PROMISED: cores", "later",
			"Not known", "Left out", "/c.parquet",
			"half as many 4.2, 3.6-7.4", "0.0 %, 1.2 %, 34.0 %, most on eu1/n\\x1b[7",
			"Over 5 shards contended 0.0 %, 0.0 %, 89.0 %, most on eu1/n7/<b>", "request p99 12 ms, 14 ms, 81 ms, most on eu1/n8/cart-0, of 4"} {
			if !strings.Contains(shown, want) {
				t.Errorf("no %q in the page:\n%s", want, shown)
			}
		}
		if dots := strings.Count(s, "<circle"); dots != 2 {
			t.Errorf("%d dots", dots)
		}
	}
}

// The page lists services, those that save most first, each with its own view, and as many as are bounded.
func TestServiceList(t *testing.T) {
	d := Document{Services: []Service{{Name: "small", CoresNow: new(1.0)}, {Name: "unknown"}, pricedBy("app", Narrow, 6, nil)}}
	d.Services[2].Pools = document().Defaults.Pools[:1]
	l := newServiceList(d)
	if l.More != 0 || len(l.Rows) != 3 || l.Rows[0].Cells[0] != "shop/cart/app" || l.Rows[1].Cells[0] != "small" || l.Rows[2].Bars != nil {
		t.Fatalf("%+v", l)
	}
	first := l.Rows[0]
	want := []pageBar{{Name: "now", Value: "12.0", Part: 100}, {Name: "lower", Value: "0.0, 9.0-11.7", Low: 75, Wide: 22.5, Ranged: true},
		{Name: "narrow", Value: "0.0, 3.0-6.0", Low: 25, Wide: 25, Ranged: true, Chosen: true}}
	for i := range want { // prices of all its containers
		d.Services[2].Prices[max(0, i-1)].CoresNow = 12
	}
	if got := serviceBars(d.Services[2]); len(got) != len(want) {
		t.Errorf("%+v", got)
	} else {
		for i, bar := range got {
			if bar.Low, bar.Wide = math.Round(10*bar.Low)/10, math.Round(10*bar.Wide)/10; bar != want[i] {
				t.Errorf("%+v, want %+v", bar, want[i])
			}
		}
	}
	if first.Pools == nil || len(first.Pools.Rows) != 1 || len(first.Facts) == 0 {
		t.Errorf("%+v", first)
	}
	for range maxListed {
		d.Services = append(d.Services, Service{Name: "more", CoresNow: new(2.0)})
	}
	if l := newServiceList(d); len(l.Rows) != maxListed || l.More != 3 {
		t.Errorf("%d of %d services, %d more", len(l.Rows), len(d.Services), l.More)
	}
}

// The time line has a line a container, with gaps where nothing is known, and strangers' names escaped. Nothing is drawn of
// services that nothing stopped.
func TestRollouts(t *testing.T) {
	line := RolloutLine{Host: "eu1/n\x1b7", Pod: "<b>", StoppedShare: make([]*float64, 8), RequestP99Before: new(44.0)}
	for i, v := range []float64{0.5, 0.25, -1, -1, 0, -1, -1, 0} {
		if v >= 0 {
			line.StoppedShare[i] = &v
		}
	}
	d := Document{Rollouts: []Rollout{{Service: "<script>", Remedy: "narrow", Containers: 9, Lines: []RolloutLine{line, {}}},
		{Service: "calm<i>", Remedy: "pin", Containers: 2, Lines: []RolloutLine{{StoppedShare: []*float64{new(0.0), nil}}}}}}
	charts, never := newRollouts(d.Rollouts)
	got := charts[0]
	if len(charts) != 1 || len(never) != 1 || got.Most != "50.0 %" || len(got.Lines) != 2 || got.Lines[1].Path != "" || got.Lines[1].Color != 1 ||
		got.Lines[0].Path != "M86.5 14.0h.1L131.5 67.0M266.5 120.0h.1M401.5 120.0h.1" {
		t.Errorf("%+v", got)
	}
	var b strings.Builder
	if err := HTML(&b, d, webpage.Origin{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>&lt;b&gt; on eu1/n\\x1b7</title>", "narrow in 9 containers", `d="M86.5 14.0h.1L`,
		"&lt;script&gt; <span>", `class="n">37.5 %</td>`, `class="n">0.0 %</td>`, `class="n">44 ms</td>`, `class="n">-</td>`, "No quota stopped calm&lt;i&gt; (pin in 2 containers), neither before nor with it."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Logarithmic axes hold every value, also a single one.
func TestScale(t *testing.T) {
	for _, values := range [][]float64{{1}, {0.03, 400}, {10}} {
		s := newScale(50, 710)
		for _, v := range values {
			s.take(v)
		}
		for _, v := range values {
			if at := s.place(v); math.IsNaN(at) || at < 50 || at > 710 {
				t.Errorf("%v of %v at %v", v, values, at)
			}
		}
		if ticks := s.ticks(); len(ticks) < 2 || ticks[0].At != 50 {
			t.Errorf("%v: %v", values, ticks)
		}
	}
}

// A stop of a long period is no power of ten, and a short one is not zero.
func TestStopLength(t *testing.T) {
	for ms, want := range map[float64]string{0.128: "0.13 ms", 1.536: "1.5 ms", 98.304: "98 ms", 131.072: "131 ms", 1048.576: "1.05 s"} {
		if got := milliseconds(&ms); got != want {
			t.Errorf("%g ms: %q, want %q", ms, got, want)
		}
	}
	if got := milliseconds(nil); got != "-" {
		t.Errorf("not known: %q", got)
	}
}

// Which hosts are gone is told everywhere, with some of their names, which are strangers'.
func TestGoneIsTold(t *testing.T) {
	d := document()
	writers := map[string]func(*strings.Builder) error{
		"text":    func(b *strings.Builder) error { return Write(b, d, page.Style{Width: 400}) },
		"page":    func(b *strings.Builder) error { return HTML(b, d, webpage.Origin{}) },
		"plan":    func(b *strings.Builder) error { return WritePlan(b, Plan{Input: d.Input}, page.Style{Width: 400}) },
		"metrics": func(b *strings.Builder) error { return Metrics(b, d) },
	}
	for name, write := range writers {
		var b strings.Builder
		if err := write(&b); err != nil || strings.Contains(b.String(), "gone: ") {
			t.Errorf("%s, none is gone: %v\n%s", name, err, b.String())
		}
	}
	d.Input.HostsGone, d.Input.ContainersGone = 30, 71
	for range 20 {
		d.Input.Gone = append(d.Input.Gone, Gone{Host: "eu1/n\x1b7", Until: noon, Containers: 2})
	}
	for name, write := range writers {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		want := `gone: 71 containers on 30 hosts without rows of the last 15 min, which ended or whose rows are not here yet: eu1/n\x1b7, eu1/n\x1b7, eu1/n\x1b7, eu1/n\x1b7, eu1/n\x1b7 and 25 more`
		if name == "metrics" {
			want = "unthrottle_fleet_hosts_gone 30\n"
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: no %q in\n%s", name, want, b.String())
		}
	}
}
