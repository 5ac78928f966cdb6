// Package topology stands for a module of nri-plugins that its release names and the module proxy does not
// have. The measured code does not import it.
package topology
