package policy

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/placement"
)

// KeyType is the type of a key's value.
type KeyType string

// The types, in the words of JSON schema. A length of time is a text such as 500ms.
const (
	TypeText     KeyType = "string"
	TypeTime     KeyType = "duration"
	TypeWhole    KeyType = "integer"
	TypeNumber   KeyType = "number"
	TypeTruth    KeyType = "boolean"
	TypeWords    KeyType = "array"  // of texts
	TypeLabels   KeyType = "labels" // texts by text
	TypeSettings KeyType = "object" // Keys below it
)

// Key is a key of a rule, as other programs need it: types and schemas of policies are generated from it. What no single key
// says, such as a setting that belongs to another remedy, ParseRules alone checks.
type Key struct {
	Name string
	// Field is the name of its Go field.
	Field string
	Type  KeyType
	// Words are all values that are allowed; nil: others too.
	Words []string
	// Least and Most bound a number; Above: it must be larger than Least.
	Least, Most float64
	Above       bool
	// Keys are those of an object.
	Keys []Key
	// NotInPolicies says why objects of Kubernetes do not have the key; "": they have.
	NotInPolicies string
	// Doc begins in lower case and has no full stop.
	Doc string
}

// why commands are not in policies.
const noCommands = "a command would run as root on each node"

// RuleKeys are all keys of a rule, in the order in which people read them.
func RuleKeys() []Key {
	may := strings.Split(MayNames(), ", ")
	classes := []string{string(placement.Exclusive), string(placement.Hybrid), string(placement.Floating), string(placement.Secondary)}
	ownersOf := func(flag string) string {
		for _, s := range remedy.Settings() {
			if s.Flag == flag {
				return s.Owners()
			}
		}
		return ""
	}
	return []Key{
		{Name: "match", Field: "Match", Type: TypeSettings, Doc: "which containers the rule is for: all that is " +
			"given must fit", Keys: []Key{
			{Name: "name", Field: "Name", Type: TypeText, Doc: "a pattern for the name of the container, the pod, or " +
				"pod/container; * does not cross a /"},
			{Name: "namespace", Field: "Namespace", Type: TypeText, Doc: "a pattern for the namespace"},
			{Name: "cgroup", Field: "Cgroup", Type: TypeText, Doc: "a pattern for the cgroup's path", NotInPolicies: "policies name pods"},
			{Name: "labels", Field: "Labels", Type: TypeLabels,
				Doc: "labels that the pod must have; they are known where the agent has a session with the runtime " +
					"(tiers cure and narrow)"},
			{Name: "pods", Field: "Pods", Type: TypeWords, Doc: "UIDs of pods, of which the container's must be one",
				NotInPolicies: "a rollout draws them"},
		}},
		{Name: "policy", Field: "Policy", Type: TypeText, Doc: "the object that the rule was made from",
			NotInPolicies: "it is the object itself"},
		{Name: "mode", Field: "Mode", Type: TypeText, Words: []string{string(Observe), string(Apply)},
			Doc:           "what may be done by the rule, within the file's mode",
			NotInPolicies: "it stands beside the rules"},
		{Name: "until", Field: "Until", Type: TypeText, Doc: "when the rule ends, and what it applied is taken back",
			NotInPolicies: "a rollout says it"},
		{Name: "remedy", Field: "Remedy", Type: TypeText, Words: remedyWords(),
			Doc: "what is done: auto chooses by forecast, none leaves the container alone; auto by default"},
		{Name: "class", Field: "Class", Type: TypeText, Words: classes, Doc: "which CPUs; it names the remedy"},
		{Name: "cpus", Field: "CPUs", Type: TypeWhole, Least: 1, Most: 8192, Doc: "how many CPUs, of " + ownersOf("cpus")},
		{Name: "via", Field: "Via", Type: TypeText, Words: remedy.Vias, Doc: "how the width is bounded, of " + ownersOf("via")},
		{Name: "credit", Field: "Credit", Type: TypeTime, Doc: "the CPU time that may be saved, of " + ownersOf("credit")},
		{Name: "burst", Field: "Burst", Type: TypeTime, Doc: "unused CPU time that may be saved up, at most the quota, of " +
			ownersOf("burst")},
		{Name: "period", Field: "Period", Type: TypeTime, Doc: "the period in which the limit is kept, 1ms to 1s, of " + ownersOf("period")},
		{Name: "factor", Field: "Factor", Type: TypeNumber, Least: 1, Most: 1000, Above: true,
			Doc: "the new limit as a multiple of the old one, of " + ownersOf("factor")},
		{Name: "to", Field: "To", Type: TypeNumber, Least: 0, Most: 8192, Above: true, Doc: "the new limit in CPUs, of " + ownersOf("to")},
		{Name: "lends", Field: "Lends", Type: TypeTruth, Doc: "secondary containers may use its CPUs while they idle, of " + ownersOf("lends")},
		{Name: "strict", Field: "Strict", Type: TypeTruth, Doc: "it keeps its quota, of " + ownersOf("strict")},
		{Name: "stays", Field: "Stays", Type: TypeTruth, Doc: "it is never moved to other CPUs afterwards, of " + ownersOf("stays")},
		{Name: "irqs", Field: "IRQs", Type: TypeTruth, Doc: "interrupts are kept off its CPUs, of " + ownersOf("irqs")},
		{Name: "may", Field: "May", Type: TypeWords, Words: may, Doc: "remedies that may grant more CPU than the limit, for auto"},
		{Name: "verify", Field: "Verify", Type: TypeText, Words: []string{VerifySLO, VerifyProbe, VerifyBoth},
			Doc: "what judges the effect"},
		{Name: "trial", Field: "Trial", Type: TypeSettings, Doc: "how long remedies may be tried on a container in " +
			"turns, and how often; what is measured chooses then, and the forecast without it", Keys: []Key{
			{Name: "most", Field: "Most", Type: TypeTime, Doc: "how long a trial takes at most, 30s to 1h"},
			{Name: "per", Field: "Per", Type: TypeTime, Doc: "the time within which a container has one trial, 24h by default"},
			{Name: "over", Field: "Over", Type: TypeTime, Doc: "the time that the turns are spread over, 10m to 168h, at least twice most; " +
				"they follow each other without it"},
			{Name: "aa", Field: "AA", Type: TypeTruth, Doc: "an A/A test of the agent itself: what is tried changes nothing, nothing is " +
				"kept, and the log tells what would have been; it needs over"},
			{Name: "quiet", Field: "Quiet", Type: TypeText, Doc: "a time of each day in which nothing is " +
				"tried, such as 08:00-20:00"},
			{Name: "zone", Field: "Zone", Type: TypeText, Doc: "the time zone of quiet, such as Europe/Berlin; UTC without it"},
		}},
		{Name: "startup", Field: "Startup", Type: TypeSettings,
			Doc: "what a container gets while it starts, until it is " +
				"ready", Keys: []Key{
				{Name: "remedy", Field: "Remedy", Type: TypeText, Words: startupWords,
					Doc: "burst, or raise to the next whole number of CPUs, so that runtimes see as many as without"},
				{Name: "most", Field: "Most", Type: TypeTime, Doc: "for how long at most, 1s to 10m, 1m by default"},
			}},
		{Name: "slo", Field: "SLO", Type: TypeSettings, Doc: "the latency that must be kept", Keys: []Key{
			{Name: "objective", Field: "Objective", Type: TypeText, Doc: "a bound on a percentile, such as p99<20ms"},
			{Name: "command", Field: "Command", Type: TypeText, Doc: "prints the latencies", NotInPolicies: noCommands},
			{Name: "interval", Field: "Interval", Type: TypeTime, Doc: "how often the command is asked", NotInPolicies: noCommands},
			{Name: "look_back", Field: "LookBack", Type: TypeTime, Doc: "how far the command looks back", NotInPolicies: noCommands},
		}},
		{Name: "annotations", Field: "Annotations", Type: TypeSettings,
			Doc: "what the owners of pods may ask for by annotations, beside none", Keys: []Key{
				{Name: "allow", Field: "Allow", Type: TypeWords, Words: remedyWords(), Doc: "remedies, or auto"},
				{Name: "objective", Field: "Objective", Type: TypeTruth, Doc: "another bound than that of slo", NotInPolicies: noCommands},
			}},
	}
}

// InPolicies are the keys that objects of Kubernetes have too.
func InPolicies(keys []Key) []Key {
	var out []Key
	for _, k := range keys {
		if k.NotInPolicies == "" {
			k.Keys = InPolicies(k.Keys)
			out = append(out, k)
		}
	}
	return out
}

// String names the key and its type.
func (k Key) String() string { return fmt.Sprintf("%s (%s)", k.Name, k.Type) }
