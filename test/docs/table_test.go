package docs

import "slices"

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
	// anyOrder: the figures of the run order the lines.
	anyOrder bool
}

// The scenes.
const (
	offline = "offline" // files only
	shop    = "shop"    // a shop's containers under limits
	cart    = "cart"    // a pool that works in bursts
	system  = "system"  // the host's own slices
	host    = "host"    // no cgroups of ours
	alone   = "alone"   // commands that make cgroups of their own
	measure = "measure" // of these, those that measure for long
	// tutorial is the program of the tutorial under a limit.
	tutorial = "tutorial"
	// cluster is a pod on a real Kubernetes (make e2e-tutorial).
	cluster = "cluster"
)

// pluginTest runs what the page of the plugin shows.
const pluginTest = "needs a cluster; TestPage of kubernetes/cmd/kubectl-unthrottle runs it, and compares it"

// fixColumns is the width at which pages show the lines of fix and apply, which no
// terminal has filled.
const fixColumns = 100

var (
	// Whom else the host has outside the scope, and what it did meanwhile.
	others = []string{`^note `, `^left `, `not moved`}
	// recommendedLines: what is recommended depends on what else the host does.
	recommendedLines = []string{`^(Recommended|Leave it|More CPU than the limit|A setting of the service|Nothing is recommended): `, `^Beside it: `, `^Next: `, `^(pin to|narrow|burst|period|weight|raise to)\b.*: not possible here: `}
	// fixLines: rows and the sentences about them depend on what else the host does. So do
	// which remedy is written, and what came of it.
	fixLines = append(slices.Concat(recommendedLines,
		[]string{`^(> )?(leave it|pin to|narrow|burst|period|weight|raise to|pool of|all pools)\b`, `^0 threads? of pool`,
			`throttled periods? in T`, `^0 backlogs? in T: looking`, `^stopped per second`, `^CPUs used`, `^responses`,
			`^another pool`, `^neighbour`,
			`^0\. /cart `, `^unused time of earlier periods`, `^apply this`, `^the effect is unverified`, `^verdict `,
			`^(in force as|undone:) `, `^nothing is in force`, `^unthrottle: the container is still`,
			`^(> )?left as it is\b`, `^the forecast says in which order`, `^try these in turns`, `^round 0, `,
			`^0 rounds? in turns`, `is not tried again: `, `is tried again: `, `^requests `, `^remedy .* rounds`}), others...)
	// shopFixLines: as fixLines, and how often it looked or undid what did not help.
	shopFixLines = append([]string{`^0 throttled periods? in T: looking`, `^looking again`, `^undoing it`, `^0\. `,
		`^unthrottle: the container is still`}, fixLines...)
	// undoneLines: on a busy host fix may have left nothing in force.
	undoneLines = []string{`^stops: `, `^nothing is in force`, `^/webshop burst`, `^TARGET`, `^wrote `, `^verdict`}
	// shopLines: a container at rest, and what a stall of the host shows of it.
	shopLines = []string{`^/shop/mail `}
	// systemLines: what the host's own processes used, if that could be measured.
	systemLines = []string{`^note the host's own processes used`, `^note how much CPU they use was not measured`, `stay where they are`}
	// demoLines: the verdict, and who else wanted the CPUs.
	demoLines = []string{`^The quota stopped the container in only`, `^With pin, p99`,
		`^Pin (changed nothing|made it worse) here`, `^No verdict`, `^the same CPU used`, `^other CPU used`, `^but at other CPU used`,
		`^In variant`, `^It moves no other process`, `^Note: `, `^The demo runs at the highest CPU weight`}
	// disturbedLines: what a runtime, or a run that was killed before, did beside the work.
	disturbedLines = []string{`took part, with up to`, `^the cgroups of 0 killed run`, `did not get real-time priority`}
	// latencyLines: whether the rounds of a remedy agree is what else runs.
	latencyLines = append([]string{`^~ the rounds lie`}, disturbedLines...)
	// fibtestLines: the verdict, and its reason.
	fibtestLines = append([]string{`^(Fixed|Affected|Unmeasurable): `}, disturbedLines...)
	// explainLines: causes besides the first, neighbours, and which checks passed are what
	// else the host does. So are the pools that waited, and the mark of a row without a bar.
	explainLines = append([]string{`^0\. `, `^It is starting: `, `^Ask again when it is older`,
		`^It was stopped while it started`, `count as start-up`, `^Not measured`, `^[^ ].*: held CPUs for`,
		`^and 0 neighbour`, `^and 0 weaker cause`, `^Checks: `, `^time on CPUs against`,
		`: (FAILED, off by|not judged)`, `^0 event`, `^Cost of width`, `^Runnable threads per reserved core`,
		`^pool own quota`, `^own quota .* all T$`, `^http-worker-\* T`, `^all T`,
		`^(mean|limit|mean, limit) 0$`}, recommendedLines...)
	// helmLines: when it was installed.
	helmLines = []string{`^LAST DEPLOYED`}
	// clusterLines: ids of pods, and where fix fills the line of responses. Of two equal quotas, the container's and its pod's,
	// now one stops it and now the other.
	clusterLines = []string{`^unthrottle/unthrottle-`, `^shop/cart/`, `^/kubepods`, `^(kube|etcd|node-containerd|lab|dbus|init|systemd)\S*\.(service|scope)`, `pod[0-9a-f]`,
		`^The quota of an ancestor`, "^Pool `", `^container itself used`,
		`backlog of the same work`, `^of the time$`, `^the time$`}
	explainParts = []part{
		{to: `^ 1\. `},
		{from: `^CPUs at once`, to: `^$`},
		{from: `^The worst stretch`, most: 10},
		{from: `^Who spent it`, most: 3},
		{from: `^Where waiting went`},
	}
)

var table = []row{
	{page: "README.md", command: "unthrottle ls", scene: shop, optional: shopLines, anyOrder: true},
	{page: "README.md", command: "sudo unthrottle explain /cart --for 2s", scene: cart, width: 80, optional: explainLines,
		parts: []part{{from: `^[0-9]+ threads of pool`, most: 1}, {from: `^The worst stretch`, most: 6}}},
	{page: "README.md", command: fixCart, scene: cart, width: fixColumns, byPage: true, optional: fixLines,
		parts: []part{{from: `^  remedy .* rounds`, most: 6}, {from: `^verdict `, most: 2}}},

	{page: "docs/lab.md", command: "make lab", elsewhere: "boots a guest; test/lab has the test of it"},
	{page: "docs/lab.md", command: "bin/lab run --smp 4 --slow 10 -- sh -c 'time sleep 1'",
		elsewhere: "boots a guest in slow time; make lab-slow has the test of it"},
	{page: "docs/lab.md", command: "bin/lab list", elsewhere: "names what the cache holds; TestList in test/lab/cmd/lab"},

	{page: "docs/reference/agent.md", command: "sudo unthrottle agent --config /etc/unthrottle.yaml", scene: alone},
	{page: "docs/reference/agent.md", command: "unthrottle agent --check --config packaging/unthrottle.yaml", scene: offline, exact: true},
	{page: "docs/reference/apply.md", command: "sudo unthrottle apply /shop/checkout --remedy pin --dry-run",
		scene: shop, width: fixColumns, byPage: true, optional: others},
	{page: "docs/reference/apply.md", command: "sudo unthrottle apply --system", scene: system, optional: systemLines},
	{page: "docs/reference/bench.md", command: "sudo unthrottle bench latency --repeat 2 --for 3s", scene: measure, optional: latencyLines},
	{page: "docs/reference/bench.md", command: "sudo unthrottle bench fibtest --repeat 2 --for 3s", scene: measure,
		optional: fibtestLines},
	{page: "docs/reference/check.md", command: "unthrottle check", scene: host, firstCell: true},
	{page: "docs/reference/defrag.md", command: "sudo unthrottle defrag --dry-run",
		elsewhere: "needs several L3 caches; internal/ui/report/defrag has the test of the view"},
	{page: "docs/reference/demo.md", command: "sudo unthrottle demo", scene: measure, width: 80, optional: demoLines},
	{page: "docs/reference/explain.md", command: "sudo unthrottle explain /cart --for 2s", scene: cart, width: 80,
		optional: explainLines, parts: explainParts},
	{page: "docs/reference/explain.md", command: "unthrottle explain /cart --for 2s", scene: cart, width: 80, optional: explainLines},
	{page: "docs/reference/fix.md", command: fixCart, scene: cart, width: fixColumns, byPage: true, optional: fixLines},
	{page: "docs/reference/fleet.md", command: "unthrottle fleet generate --hosts 4 --containers 40 --for 2h --seed " +
		"1 --out gen", elsewhere: "needs Spark, and takes minutes: make spark compares the engines"},
	{page: "docs/reference/flight-recorder.md", command: "sudo unthrottle explain checkout --at 03:12",
		elsewhere: "shows no output; internal/agent and internal/explain/live have the tests of the flight recorder"},
	{page: "docs/reference/forecast.md", command: "unthrottle forecast service-pools-small.utr --slo 'p99<50ms' " +
		"--load 1..3 --host-load 0%", elsewhere: "searches loads for minutes; TestForecastJSON and its neighbours in cmd/unthrottle"},
	{page: "docs/reference/look.md", command: "unthrottle look 4711 --for 40s",
		elsewhere: "looks at a process by its number; internal/explain/sampled/sampler has the test of it"},
	{page: "docs/reference/inside.md", command: "unthrottle inside",
		elsewhere: "runs inside a container with a quota; internal/inside/spin has the test of it"},
	{page: "docs/reference/kubectl.md", command: "kubectl unthrottle top", elsewhere: pluginTest},
	{page: "docs/reference/kubectl.md", command: "kubectl unthrottle explain cart-7d9c5b8f6-x2x4x | head -n 6", elsewhere: pluginTest},
	{page: "docs/reference/kubectl.md", command: "kubectl unthrottle forecast cart-7d9c5b8f6-x2x4x | head -n 11", elsewhere: pluginTest},
	{page: "docs/reference/kubectl.md", command: "kubectl unthrottle fix cart-7d9c5b8f6-x2x4x", elsewhere: pluginTest},
	{page: "docs/reference/kubectl.md", command: "kubectl unthrottle fix cart-7d9c5b8f6-x2x4x --dry-run | tail -n 14",
		elsewhere: pluginTest},
	{page: "docs/reference/kubectl.md", command: "kubectl unthrottle fix cart-7d9c5b8f6-x2x4x --remedy secondary", elsewhere: pluginTest},
	{page: "docs/reference/kubectl.md", command: "kubectl unthrottle restore cart-7d9c5b8f6-x2x4x", elsewhere: pluginTest},
	{page: "docs/reference/ls.md", command: "unthrottle ls", scene: shop, optional: shopLines, anyOrder: true},
	{page: "docs/reference/place.md", command: "unthrottle place --topology machine.json --containers wanted.yaml",
		scene: offline, exact: true},
	{page: "docs/reference/restore.md", command: "sudo unthrottle restore /shop/checkout", scene: shop,
		width: fixColumns, byPage: true, optional: others},
	{page: "docs/reference/simulate.md", command: "sudo unthrottle simulate --real examples/scenarios/lat-small.yaml " +
		"--for 4s", scene: alone, optional: disturbedLines},
	{page: "docs/reference/simulate.md", command: "unthrottle simulate examples/scenarios/cgroup-lat-quota.yaml " +
		"--timeline", scene: offline, exact: true,
		parts: []part{{most: 15}}},
	{page: "docs/reference/simulate.md", command: "unthrottle simulate examples/scenarios/conceptual.yaml --explain",
		scene: offline, exact: true,
		parts: []part{{from: "^One period", most: 5}, {from: "^ *35.0"}}},
	{page: "docs/reference/status.md", command: "sudo unthrottle status", scene: shop, optional: []string{`^stops: `}},
	{page: "docs/reference/top.md", command: "sudo unthrottle top", elsewhere: "fills a screen; internal/ui/top has the tests of it"},
	{page: "docs/reference/topology.md", command: "unthrottle topology", scene: offline, exact: true},
	{page: "docs/reference/topology.md", command: "unthrottle topology --json | jq '[.cpus[] | select(.l3 == 0 and " +
		".online) | .id]'   # the CPUs of L3 0",
		elsewhere: "shows no output; topology/json_test.go has the keys"},

	{page: tutorialPage, command: "tail -n 2 shop.log   # as it was", scene: tutorial},
	{page: tutorialPage, command: "sudo unthrottle ls", scene: tutorial},
	{page: tutorialPage, command: "sudo unthrottle explain /webshop --for 5s", scene: tutorial, width: 80, optional: explainLines,
		parts: []part{{from: `^[0-9]+ threads of pool`, to: `^ 1\.`}, {from: `^The worst stretch`, most: 5}}},
	{page: tutorialPage, command: fixShop, scene: tutorial, width: fixColumns, byPage: true, optional: shopFixLines},
	{page: tutorialPage, command: "tail -n 2 shop.log   # with the burst", scene: tutorial},
	{page: tutorialPage, command: "sudo unthrottle status", scene: tutorial, optional: undoneLines},
	{page: tutorialPage, command: "sudo unthrottle restore", scene: tutorial, optional: undoneLines},
	{page: tutorialPage, command: "tail -n 2 shop.log   # undone", scene: tutorial},

	{page: clusterPage, command: "helm install unthrottle packaging/chart/unthrottle -n unthrottle --create-namespace",
		scene: cluster, optional: helmLines,
		parts: []part{{from: `^unthrottle .* tier`}}},
	{page: clusterPage, command: "kubectl exec -n unthrottle ds/unthrottle -- unthrottle ls", scene: cluster,
		anyOrder: true, optional: clusterLines},
	{page: clusterPage, command: "kubectl exec -n unthrottle ds/unthrottle -- unthrottle explain shop/cart",
		scene: cluster, width: fixColumns,
		optional: append(clusterLines, explainLines...), parts: []part{{to: `^ 1\. `}, {from: `^Recommended: `, most: 1}}},
	{page: clusterPage, command: "helm upgrade unthrottle packaging/chart/unthrottle -n unthrottle --reuse-values " +
		"--set tier=cure", scene: cluster, optional: helmLines,
		parts: []part{{from: `^unthrottle .* tier`, to: `^$`}, {from: `^Cure one`}}},
	{page: clusterPage, command: "kubectl exec -n unthrottle ds/unthrottle -- unthrottle fix shop/cart --yes --for 10s",
		scene: cluster, width: fixColumns,
		optional: append(clusterLines, fixLines...)},
	{page: clusterPage, command: "client --for 20s   # before", scene: cluster},
	{page: clusterPage, command: "client --for 20s   # after", scene: cluster},
}
