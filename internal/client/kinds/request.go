package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// request is one reading of what a user wrote for a kind. Everything but literal is in lower case,
// like resources, groups and versions.
type request struct {
	name      string // plural, singular, short name or kind
	literal   string // the name as it was written
	group     string
	version   string // "": the preferred one
	anyGroup  bool
	prefix    bool // the group may be given by its beginning: storageclass.storage
	kindFirst bool // it was written as an object's kind and not as a resource
}

// Check is an error for what cannot be a kind, whatever the server serves: "", "a/b/c/d".
func Check(arg string) error {
	_, err := parse(arg)
	return err
}

// parse returns the readings of a kind argument, the likeliest first.
func parse(arg string) ([]request, error) {
	if arg == "" {
		return nil, errors.New("look up a kind: it is empty")
	}
	if slash := strings.LastIndexByte(arg, '/'); slash >= 0 {
		gv, err := schema.ParseGroupVersion(strings.ToLower(arg[:slash]))
		literal := arg[slash+1:]
		if err != nil || gv.Version == "" || literal == "" {
			return nil, fmt.Errorf("look up kind %q: it is neither a kind nor apiVersion/kind", arg)
		}
		return []request{{
			name: strings.ToLower(literal), literal: literal,
			group: gv.Group, version: gv.Version, kindFirst: true,
		}}, nil
	}
	literal, rest, qualified := strings.Cut(arg, ".")
	base := request{name: strings.ToLower(literal), literal: literal}
	rest = strings.ToLower(rest)
	switch {
	case base.name == "":
		return nil, fmt.Errorf("look up kind %q: it has no name", arg)
	case !qualified || rest == "":
		base.anyGroup = true
		return []request{base}, nil
	}
	var requests []request
	if v, group, ok := strings.Cut(rest, "."); ok {
		versioned := base
		// "pods.v1." is the core group in kubectl's notation. kubectl takes any group that has
		// such a version.
		versioned.version, versioned.group, versioned.anyGroup = v, group, group == ""
		requests = append(requests, versioned)
	}
	if !strings.HasSuffix(rest, ".") {
		base.group, base.prefix = rest, true
		requests = append(requests, base)
	}
	return requests, nil
}

// groupMatches returns the ways in which a group may match, the best first.
func (k request) groupMatches() []func(group string) bool {
	if k.anyGroup {
		return []func(string) bool{func(string) bool { return true }}
	}
	matches := []func(string) bool{func(group string) bool { return group == k.group }}
	if k.prefix {
		begins := func(group string) bool { return strings.HasPrefix(group, k.group) }
		matches = append(matches, begins)
	}
	return matches
}

// nameMatches returns the ways in which a resource may match by name, the best first.
func (k request) nameMatches() []func(*servedResource) bool {
	resource := func(r *servedResource) bool {
		return r.gvr.Resource == k.name || (r.singular != "" && r.singular == k.name)
	}
	short := func(r *servedResource) bool { return slices.Contains(r.shortNames, k.name) }
	kind := func(r *servedResource) bool { return strings.EqualFold(r.kind, k.literal) }
	exact := func(r *servedResource) bool { return r.kind == k.literal }
	if k.kindFirst {
		return []func(*servedResource) bool{exact, kind, resource, short}
	}
	return []func(*servedResource) bool{resource, short, kind}
}

// expandShortName expands short names for clusters without discovery, which are fakes.
func (k request) expandShortName() (request, bool) {
	long, ok := builtinShortNames[k.name]
	if !ok || (!k.anyGroup && k.group != long.Group) {
		return k, false
	}
	k.name, k.group, k.anyGroup, k.prefix = long.Resource, long.Group, false, false
	return k, true
}

var builtinShortNames = map[string]schema.GroupResource{
	"cm":     {Resource: "configmaps"},
	"ep":     {Resource: "endpoints"},
	"ev":     {Resource: "events"},
	"limits": {Resource: "limitranges"},
	"no":     {Resource: "nodes"},
	"ns":     {Resource: "namespaces"},
	"po":     {Resource: "pods"},
	"pv":     {Resource: "persistentvolumes"},
	"pvc":    {Resource: "persistentvolumeclaims"},
	"quota":  {Resource: "resourcequotas"},
	"rc":     {Resource: "replicationcontrollers"},
	"sa":     {Resource: "serviceaccounts"},
	"svc":    {Resource: "services"},
	"deploy": {Group: "apps", Resource: "deployments"},
	"ds":     {Group: "apps", Resource: "daemonsets"},
	"rs":     {Group: "apps", Resource: "replicasets"},
	"sts":    {Group: "apps", Resource: "statefulsets"},
	"hpa":    {Group: "autoscaling", Resource: "horizontalpodautoscalers"},
	"cj":     {Group: "batch", Resource: "cronjobs"},
	"ing":    {Group: "networking.k8s.io", Resource: "ingresses"},
	"netpol": {Group: "networking.k8s.io", Resource: "networkpolicies"},
	"pdb":    {Group: "policy", Resource: "poddisruptionbudgets"},
	"pc":     {Group: "scheduling.k8s.io", Resource: "priorityclasses"},
	"sc":     {Group: "storage.k8s.io", Resource: "storageclasses"},
	"crd":    {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	"crds":   {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
}
