package project

import (
	"maps"
	"slices"
	"strings"
)

// Keep says which fields of an object are kept, by their paths. What is on the way to a kept field
// is kept with it: an object has no other members then, and a list keeps its length. It never
// changes.
type Keep struct {
	root *node
	text string
}

// node is what is kept of a value.
type node struct {
	// members are what is kept of an object, or of each element of a list, or of a map by its
	// keys. Nil: all of it.
	members map[string]*node
	// Compiled for a Go type: the same by the fields' numbers in protobuf, and whether the value
	// is a map, whose entries are messages of their own.
	numbers map[int]*node
	entries bool
}

// NewKeep returns what keeps the fields at the paths. An empty path is an error.
func NewKeep(paths ...Path) (*Keep, error) {
	k := &Keep{root: &node{members: map[string]*node{}}}
	for _, path := range paths {
		if len(path) == 0 || slices.Contains(path, "") {
			return nil, errEmpty
		}
		k.root.add(path)
	}
	var all []string
	for _, path := range k.Paths() {
		all = append(all, path.String())
	}
	k.text = strings.Join(all, ", ")
	return k, nil
}

// Paths returns the paths, sorted and without those that others contain.
func (k *Keep) Paths() (all []Path) {
	k.root.paths(nil, func(p Path) { all = append(all, p) })
	return all
}

// add makes a path kept as well. A path to an object keeps it whole, whatever else is kept of it.
func (n *node) add(path Path) {
	for i, name := range path {
		next, there := n.members[name]
		switch {
		case there && next.members == nil:
			return
		case i == len(path)-1:
			n.members[name] = &node{}
			return
		case !there:
			next = &node{members: map[string]*node{}}
			n.members[name] = next
		}
		n = next
	}
}

// paths calls the function with each path, in order.
func (n *node) paths(to Path, f func(Path)) {
	if n.members == nil {
		f(to)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.members)) {
		n.members[name].paths(append(slices.Clip(to), name), f)
	}
}

// String returns the paths as text. Keeps of one text keep the same, and [ParseKeep] reads it.
func (k *Keep) String() string { return k.text }

// Holds reports whether all of the field at a path is kept.
func (k *Keep) Holds(path ...string) bool {
	n := k.root
	for _, name := range path {
		if n.members == nil {
			return true
		}
		if n = n.members[name]; n == nil {
			return false
		}
	}
	return n.members == nil
}

// Tree returns what is kept of an object's content. It shares memory with the content, and writes
// to neither. If everything is kept, it is the content itself.
func (k *Keep) Tree(content map[string]any) map[string]any {
	kept, _ := k.root.tree(content)
	return kept.(map[string]any)
}

// tree returns what is kept of a value, and whether that is less. A value that has another form
// than the paths say stays as it is: whoever decodes it says what is wrong.
func (n *node) tree(value any) (kept any, less bool) {
	if n.members == nil {
		return value, false
	}
	switch value := value.(type) {
	case map[string]any:
		return n.object(value)
	case []any:
		return n.list(value)
	}
	return value, false
}

func (n *node) object(value map[string]any) (kept map[string]any, less bool) {
	kept = make(map[string]any, min(len(n.members), len(value)))
	for name, child := range n.members {
		if member, ok := value[name]; ok {
			of, isLess := child.tree(member)
			kept[name], less = of, less || isLess
		}
	}
	if !less && len(kept) == len(value) {
		return value, false
	}
	return kept, true
}

func (n *node) list(value []any) (kept []any, less bool) {
	for i, element := range value {
		of, isLess := n.tree(element)
		if isLess && !less {
			kept, less = slices.Clone(value), true
		}
		if less {
			kept[i] = of
		}
	}
	if !less {
		return value, false
	}
	return kept, true
}
