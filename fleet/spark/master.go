package spark

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

const host = `[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]`

// masters are the forms of --on.
var masters = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`local`,
	`local\[(?:\*|[1-9][0-9]{0,3})(?:,[1-9][0-9]?)?\]`,
	`local-cluster\[[1-9][0-9]{0,2},[1-9][0-9]{0,2},[1-9][0-9]{2,6}\]`,
	`spark://(?:` + host + `):[0-9]{1,5}(?:,(?:` + host + `):[0-9]{1,5})*`,
	`k8s://(?:https?://)?(?:` + host + `)(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?`,
}, "|") + `)$`)

// Master is where Spark runs.
type Master string

// ParseMaster checks the name of a master.
func ParseMaster(s string) (Master, error) {
	if len(s) > 1024 || !masters.MatchString(s) {
		return "", fmt.Errorf("%s is no master of Spark: give spark://HOST:7077, k8s://https://HOST:6443, local[2] or "+
			"local-cluster[2,1,2048]", text.Quoted(s))
	}
	return Master(s), nil
}

// Here reports whether all of Spark runs on this machine.
func (m Master) Here() bool { return strings.HasPrefix(string(m), "local") }

// clusterHere is the memory in MiB of each worker of a local cluster; ok is false for other masters.
func (m Master) clusterHere() (memoryMB string, ok bool) {
	rest, ok := strings.CutPrefix(string(m), "local-cluster[")
	if !ok {
		return "", false
	}
	return strings.TrimSuffix(rest[strings.LastIndexByte(rest, ',')+1:], "]"), true
}
