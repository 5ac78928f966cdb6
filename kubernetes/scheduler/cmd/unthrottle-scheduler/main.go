// unthrottle-scheduler is kube-scheduler with the plugin PooledDemand, which a profile may enable. All flags are those of
// kube-scheduler.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the client's own metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version as a metric
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/unthrottle/unthrottle/kubernetes/scheduler/pooleddemand"
)

func main() {
	command := app.NewSchedulerCommand(app.WithPlugin(pooleddemand.Name, pooleddemand.New))
	command.Use = "unthrottle-scheduler"
	os.Exit(cli.Run(command))
}
