package bugreport

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// safeKeys are those of the agent's configuration whose values are kept.
var safeKeys = strings.Fields(`version mode interval bound containers moves_per_minute cpu_share cpu memory probe record_above
	remedy cpus factor to may verify lends strict stays irqs class via credit objective look_back annotations allow startup every`)

// nameKeys are those whose values are names or patterns of names.
var nameKeys = strings.Fields("name namespace cgroup scope cluster node")

// Config is the agent's configuration without comments, commands, labels and addresses, and with hashed names.
func (r *Redactor) Config(text []byte) string {
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil || len(doc.Content) == 0 {
		return fmt.Sprintf("# %d bytes that are no YAML; unthrottle agent --check says where\n", len(text))
	}
	out, err := yaml.Marshal(r.value("", doc.Content[0]))
	if err != nil {
		return "# it cannot be written without what is private: " + err.Error() + "\n"
	}
	return string(out)
}

// value is what is kept of the value of a key.
func (r *Redactor) value(key string, n *yaml.Node) *yaml.Node {
	plain := func(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }
	switch n.Kind {
	case yaml.MappingNode:
		kept := &yaml.Node{Kind: yaml.MappingNode}
		if key == "labels" {
			return plain(fmt.Sprintf("(%d left out)", len(n.Content)/2))
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if !knownKey(name) {
				name = r.Name(name)
			}
			kept.Content = append(kept.Content, plain(name), r.value(name, n.Content[i+1]))
		}
		return kept
	case yaml.SequenceNode:
		kept := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range n.Content {
			kept.Content = append(kept.Content, r.value(key, item))
		}
		return kept
	case yaml.ScalarNode:
		switch {
		case slices.Contains(safeKeys, key) && len(n.Value) <= 40:
			return plain(n.Value)
		case slices.Contains(nameKeys, key) && strings.HasPrefix(n.Value, "/"):
			return plain(r.Path(n.Value))
		case slices.Contains(nameKeys, key):
			return plain(r.Name(n.Value))
		case key == "listen":
			if _, port, err := net.SplitHostPort(n.Value); err == nil {
				return plain("(address):" + port)
			}
		}
	}
	return plain(leftOut)
}

// knownKey tells whether a key is of the format. Another may be a mistake that says something private.
func knownKey(key string) bool {
	return slices.Contains(safeKeys, key) || slices.Contains(nameKeys, key) ||
		slices.Contains(strings.Fields("listen state_dir budget own_budget placement flight rules match labels slo command"), key)
}
