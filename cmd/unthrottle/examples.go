package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// examples are those of each command's help, by the command's words. Each line is a call and what it is for.
var examples = map[string]string{
	"ls": `  unthrottle ls
  unthrottle ls --below /kubepods --bound 5%     exit 1 if one is stopped longer
  unthrottle ls --json --for 10s`,
	"top": `  sudo unthrottle top
  sudo unthrottle top --below /system.slice --for 5s`,
	"check": `  unthrottle check
  unthrottle check --json`,
	"export": `  sudo unthrottle export --dir /var/lib/unthrottle/fleet --cluster eu1
  sudo unthrottle export --dir rows --for 1h`,
	"fleet": `  unthrottle fleet report /srv/fleet
  unthrottle fleet plan /srv/fleet`,
	"inside": `  unthrottle inside
  unthrottle inside --for 30s --json             in a container of any platform`,
	"look": `  unthrottle look 4711
  unthrottle look $(pidof java) --for 30s --json`,
	"runtimes": `  sudo unthrottle runtimes checkout
  sudo unthrottle runtimes pid:4711 --json`,
	"sized": `  unthrottle sized -- node server.js
  unthrottle sized --print
  unthrottle sized --request 0.5 --times 3 --print`,
	"topology": `  unthrottle topology
  unthrottle topology --json > machine.json      for 'place --topology'`,
	"status": `  sudo unthrottle status
  sudo unthrottle status --history --limit 10`,
	"policy": `  unthrottle policy
  unthrottle policy shop/cart-7d9f8b6c5-x2x4z    each value and its source`,
	"schema": `  unthrottle schema
  unthrottle schema fix`,
	"version": `  unthrottle version
  unthrottle version --json`,
	"demo": `  sudo unthrottle demo
  unthrottle demo --simulated                    no rights, nothing runs
  sudo unthrottle demo --for 20s --ascii`,
	"simulate": `  unthrottle simulate examples/scenarios/cgroup-lat-quota.yaml --timeline
  unthrottle simulate lat.yaml --for 10s --repeat 5 --json
  sudo unthrottle simulate lat.yaml --real --dry-run   what it would make
  sudo unthrottle simulate lat.yaml --real --for 4s --repeat 3`,
	"bench": `  sudo unthrottle bench service --quick
  sudo unthrottle bench latency`,
	"bench service": `  sudo unthrottle bench service --quick --html service.html
  sudo unthrottle bench service --shape gc --remedies quota,burst,pin
  unthrottle bench service --url http://127.0.0.1:8080/ --slo 'p99<20ms'`,
	"bench latency": `  sudo unthrottle bench latency
  sudo unthrottle bench latency --repeat 2 --for 3s`,
	"bench fibtest": `  sudo unthrottle bench fibtest
  sudo unthrottle bench fibtest --repeat 2 --for 3s`,
	"fix": `  sudo unthrottle fix checkout
  sudo unthrottle fix checkout --dry-run         forecast and writes only
  sudo unthrottle fix checkout --slo 'p99<20ms' --slo-command 'probe {since}'
  sudo unthrottle fix checkout --may raise --yes`,
	"apply": `  sudo unthrottle apply checkout --remedy burst --dry-run
  sudo unthrottle apply checkout --remedy pin --cpus 2
  sudo unthrottle apply checkout --remedy raise --to 1.5
  sudo unthrottle apply --system`,
	"defrag": `  sudo unthrottle defrag --dry-run
  sudo unthrottle defrag --max-moves 4 --pause 10s`,
	"restore": `  sudo unthrottle restore --dry-run              what would be written
  sudo unthrottle restore checkout
  sudo unthrottle restore                        everything`,
	"agent": `  sudo unthrottle agent --config /etc/unthrottle.yaml
  sudo unthrottle agent --config my.yaml --budget-cpu 1% --budget-memory 64MiB`,
}

// addExamples gives every command its examples.
func addExamples(root *cobra.Command) {
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		commandOf(root, name).Example = examples[name]
	}
}

// commandOf is the command below root that is called by these words.
func commandOf(root *cobra.Command, words string) *cobra.Command {
	cmd, rest, err := root.Find(strings.Fields(words))
	if err != nil || len(rest) > 0 {
		panic("no command " + words)
	}
	return cmd
}
