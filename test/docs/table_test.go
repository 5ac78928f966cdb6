package docs

// row is a block that a page shows.
type row struct {
	page, command string
	// elsewhere says why the output is not made here, and which test covers it. Else
	// scene names what makes it.
	elsewhere string
	scene     string
	// exact: the same input gives the same bytes.
	exact bool
	// parts are what the page shows of the output; none: all of it.
	parts []part
	// width at which paragraphs of the output are filled, in columns; 0: the output has none.
	// byPage: the page fills them, not the program.
	width  int
	byPage bool
	// firstCell: of each line the shape of its first cell counts only. The others say
	// what this host has.
	firstCell bool
	// optional are shapes of lines that only some runs print.
	optional []string
}

// The scenes.
const (
	offline = "offline" // files only
	shop    = "shop"    // a shop's containers under limits
	cart    = "cart"    // a pool that works in bursts
	system  = "system"  // the host's own slices
	host    = "host"    // no cgroups of ours
	alone   = "alone"   // commands that make cgroups of their own
)

// fixColumns is the width at which pages show the lines of fix and apply, which no
// terminal has filled.
const fixColumns = 100

var (
	// Whom else the host has outside the scope, and what it did meanwhile.
	others = []string{`^note `, `^left `, `not moved`}
	// fixLines: rows and the sentences about them depend on what else the host does.
	fixLines = append([]string{`^(> )?(leave it|pin to|narrow|burst|period|weight|raise to|pool of|all pools)\b`, `^0 threads of pool`, `^Recommended: `, `^Beside it: `,
		`throttled periods in T`, `^stopped per second`, `^CPUs used`, `^responses`, `^neighbour`}, others...)
	// demoLines: how the figures compare depends on what else runs.
	demoLines = []string{`^The quota stopped the container in only`, `^With pin, p0`, `^the same CPU used`, `^Highest weight`}
	// latencyLines: whether the rounds of a remedy agree is what else runs.
	latencyLines = []string{`^~ the rounds lie`}
	// explainLines: causes besides the first, and neighbours, are what else the host does.
	explainLines = []string{`^0\. `, `^Not measured`, `^[^ ].*: held CPUs for`, `^and 0 neighbour`, `^Checks: `, `^time on CPUs against`, `^pool own quota`, `^http-worker-\* T`}
	explainParts = []part{
		{to: `^ 1\. `},
		{from: `^CPUs at once`, to: `^$`},
		{from: `^The worst stretch`, most: 10},
		{from: `^Who spent it`, most: 3},
		{from: `^Where waiting went`},
	}
)

var table = []row{
	{page: "README.md", command: "sudo unthrottle demo", scene: alone, width: 80, optional: demoLines},
	{page: "README.md", command: "unthrottle ls", scene: shop},
	{page: "README.md", command: "sudo unthrottle explain /cart --for 2s", scene: cart, width: 80, optional: explainLines,
		parts: []part{{from: `^[0-9]+ threads of pool`, to: `^ 1\.`}, {from: `^The worst stretch`, most: 6}}},
	{page: "README.md", command: "sudo unthrottle fix /cart", scene: cart, width: fixColumns, byPage: true, optional: fixLines,
		parts: []part{{to: `^what would be written`}, {from: `^apply this`}}},

	{page: "docs/lab.md", command: "make lab", elsewhere: "boots a guest; test/lab has the test of it"},
	{page: "docs/lab.md", command: "bin/lab list", elsewhere: "names what the cache holds; TestList in test/lab/cmd/lab"},

	{page: "docs/reference/agent.md", command: "sudo unthrottle agent --config /etc/unthrottle.yaml", scene: alone},
	{page: "docs/reference/apply.md", command: "sudo unthrottle apply /shop/checkout --remedy pin --dry-run", scene: shop, width: fixColumns, byPage: true, optional: others},
	{page: "docs/reference/apply.md", command: "sudo unthrottle apply --system", scene: system},
	{page: "docs/reference/bench.md", command: "sudo unthrottle bench latency --repeat 2 --seconds 3", scene: alone, optional: latencyLines},
	{page: "docs/reference/bench.md", command: "sudo unthrottle bench fibtest --repeat 2 --seconds 3", scene: alone,
		optional: []string{`^(Fixed|Affected|Unmeasurable)`}},
	{page: "docs/reference/check.md", command: "unthrottle check", scene: host, firstCell: true},
	{page: "docs/reference/defrag.md", command: "sudo unthrottle defrag --plan", elsewhere: "needs several L3 caches; internal/ui/report/defrag has the test of the view"},
	{page: "docs/reference/demo.md", command: "sudo unthrottle demo", scene: alone, width: 80, optional: demoLines},
	{page: "docs/reference/explain.md", command: "sudo unthrottle explain /cart --for 2s", scene: cart, width: 80, optional: explainLines, parts: explainParts},
	{page: "docs/reference/explain.md", command: "unthrottle explain /cart --for 2s", scene: cart, width: 80, optional: explainLines},
	{page: "docs/reference/fix.md", command: "sudo unthrottle fix /cart", scene: cart, width: fixColumns, byPage: true, optional: fixLines},
	{page: "docs/reference/flight-recorder.md", command: "sudo unthrottle explain checkout --at 03:12", elsewhere: "shows no output; internal/cure/agent and internal/explain/live have the tests of the flight recorder"},
	{page: "docs/reference/forecast.md", command: "unthrottle forecast service-pools-small.utr --slo p99=50ms --load 1..3 --host-load 0%", elsewhere: "searches loads for minutes; TestForecastJSON and its neighbours in cmd/unthrottle"},
	{page: "docs/reference/ls.md", command: "unthrottle ls", scene: shop},
	{page: "docs/reference/place.md", command: "unthrottle place --topology machine.json --containers wanted.yaml", scene: offline, exact: true},
	{page: "docs/reference/restore.md", command: "sudo unthrottle restore /shop/checkout", scene: shop, width: fixColumns, byPage: true, optional: others},
	{page: "docs/reference/run.md", command: "sudo unthrottle run examples/scenarios/lat-small.yaml --for 4s", scene: alone},
	{page: "docs/reference/simulate.md", command: "unthrottle simulate examples/scenarios/cgroup-lat-quota.yaml --timeline", scene: offline, exact: true,
		parts: []part{{most: 15}}},
	{page: "docs/reference/simulate.md", command: "unthrottle simulate examples/scenarios/conceptual.yaml --explain", scene: offline, exact: true,
		parts: []part{{from: "^One period", most: 5}, {from: "^   35.0"}}},
	{page: "docs/reference/status.md", command: "sudo unthrottle status", scene: shop},
	{page: "docs/reference/top.md", command: "sudo unthrottle top", elsewhere: "fills a screen; internal/ui/top has the tests of it"},
	{page: "docs/reference/topology.md", command: "unthrottle topology", scene: offline, exact: true},
	{page: "docs/reference/topology.md", command: "unthrottle topology --json | jq '[.cpus[] | select(.l3 == 0 and .online) | .id]'   # the CPUs of L3 0",
		elsewhere: "shows no output; topology/json_test.go has the keys"},
}
