package conformance

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Compare runs a case on two servers, and returns how their answers differ: "" if they do not.
func Compare(ctx context.Context, one, other Server, c Case) (string, error) {
	wanted, err := Run(ctx, one, c)
	if err != nil {
		return "", err
	}
	got, err := Run(ctx, other, c)
	if err != nil {
		return "", fmt.Errorf("on the other server: %w", err)
	}
	wanted, got = generatedName.ReplaceAllString(wanted, "g-<>"), generatedName.ReplaceAllString(got, "g-<>")
	if wanted == got {
		return "", nil
	}
	return firstDifference(wanted, got) + "\nthe script:\n" + c.text, nil
}

// generatedName is one that an error names: it is masked only where an object shows it.
var generatedName = regexp.MustCompile(`g-[0-9a-z]{5}\b`)

// firstDifference is the first answer that differs: often the others follow from it.
func firstDifference(wanted, got string) string {
	one, other := strings.Split(wanted, "\n> "), strings.Split(got, "\n> ")
	for i := range one {
		if i >= len(other) || one[i] != other[i] {
			other = append(other, "nothing")
			return "on the first server:\n> " + one[i] + "\non the other one:\n> " + other[min(i, len(other)-1)]
		}
	}
	return cmp.Diff(wanted, got)
}

// Program draws a case of so many requests about a few objects of a few kinds, most of which can
// be done. It ends with watches that tell what has happened. A reference to an answer that has no
// such field is a text that is no version, UID or token.
func Program(t *rapid.T, requests int) Case {
	w := &writer{t: t, saved: map[string][]string{}, generated: map[string]bool{}}
	w.text.WriteString("base = GET $configmaps\n")
	for range requests {
		w.request()
	}
	w.histories()
	cases, err := parse("random", programLets+"\n=== program\n"+w.text.String())
	if err != nil {
		t.Fatalf("the program: %v", err)
	}
	c := cases[0]
	c.lenient = true
	return c
}

const programLets = `let configmaps = /api/v1/namespaces/$ns/configmaps
let secrets = /api/v1/namespaces/$ns/secrets
let pods = /api/v1/namespaces/$ns/pods
let services = /api/v1/namespaces/$ns/services
let leases = /apis/coordination.k8s.io/v1/namespaces/$ns/leases
let deployments = /apis/apps/v1/namespaces/$ns/deployments
let widgets = /apis/conformance.kates.io/v1/namespaces/$ns/widgets
let plains = /apis/conformance.kates.io/v1/namespaces/$ns/plains
let UID = 11111111-2222-3333-4444-555555555555
`

// programKind is a kind of the objects of programs.
type programKind struct {
	resource, apiVersion, kind string
	// whole are contents of new objects, and parts are what patches and updates change.
	whole, parts  []string
	fields        []string // that select
	status, scale bool
	custom        bool
}

var programKinds = []programKind{
	{resource: "configmaps", apiVersion: "v1", kind: "ConfigMap",
		whole: []string{"", "data: {k: v}", "data: {k: v, l: w}", "data: {}", "binaryData: {b: AAE=}", "immutable: true, data: {k: v}"},
		parts: []string{"data: {k: x}", "data: {k: null}", "data: {m: y, k: z}", "data: null", "immutable: true", "binaryData: {b: AAI=}", "data: {k: 7}", "more: 1"}},
	{resource: "secrets", apiVersion: "v1", kind: "Secret", fields: []string{"type=Opaque", "type!=Opaque"},
		whole: []string{"", "data: {k: dg==}", "stringData: {k: v}", "type: kates.io/x"},
		parts: []string{"data: {k: dw==}", "data: {l: dw==}", "stringData: {k: w}", "data: null", "type: other", "immutable: true"}},
	{resource: "leases", apiVersion: "coordination.k8s.io/v1", kind: "Lease",
		whole: []string{"", "spec: {holderIdentity: me}", "spec: {holderIdentity: me, leaseDurationSeconds: 15, leaseTransitions: 1}"},
		parts: []string{"spec: {holderIdentity: you}", "spec: {leaseTransitions: 2}", "spec: {holderIdentity: null}", "spec: null"}},
	{resource: "pods", apiVersion: "v1", kind: "Pod", status: true, fields: []string{"spec.nodeName=n1", "status.phase=Pending", "status.phase!=Pending"},
		whole: []string{"spec: {containers: [{name: c, image: i}]}", "spec: {containers: [{name: c, image: 'i:1'}, {name: d, image: j}], restartPolicy: Never, terminationGracePeriodSeconds: 0}", "spec: {nodeName: n1, containers: [{name: c, image: i}]}"},
		parts: []string{"status: {phase: Running}", "status: {phase: Failed, podIP: 10.1.2.3}", "spec: {terminationGracePeriodSeconds: 1}", "spec: {activeDeadlineSeconds: 5}"}},
	{resource: "deployments", apiVersion: "apps/v1", kind: "Deployment", status: true, scale: true,
		whole: []string{"spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}", "spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}}}"},
		parts: []string{"spec: {replicas: 2}", "spec: {replicas: 5, minReadySeconds: 3}", "spec: {paused: true}", "status: {replicas: 2, observedGeneration: 1}", "spec: {replicas: null}"}},
	{resource: "widgets", apiVersion: "conformance.kates.io/v1", kind: "Widget", status: true, scale: true, custom: true, fields: []string{"spec.color=red", "spec.size!=5"},
		whole: []string{"", "spec: {}", "spec: {color: red, size: 5, replicas: 1}", "spec: {tags: [a, b], parts: [{name: p}, {name: q, count: 2}], words: {x: u}}", "spec: {limits: {max: 5}, any: {x: [1, {y: z}]}}", "spec: {more: 1, blank: null, note: null}"},
		parts: []string{"spec: {color: blue}", "spec: {color: null, size: 7}", "spec: {tags: [b, c]}", "spec: {tags: [a, a]}", "spec: {parts: [{name: p, note: n}]}", "spec: {words: {x: null, z: w}}", "spec: {words: {x: true}}", "status: {phase: Up, ready: true}", "status: {replicas: 2}", "spec: null", "spec: {size: 0}", "spec: {more: {x: 1}}", "status: null", "spec: {replicas: 4}", "spec: {color: pink}"}},
	{resource: "plains", apiVersion: "conformance.kates.io/v1", kind: "Plain", custom: true,
		whole: []string{"", "spec: {a: 1}", "spec: {a: {b: c}}, status: {x: y}"},
		parts: []string{"spec: {a: 2}", "spec: {b: [1, 2]}", "status: {x: z}", "spec: null"}},
}

// writer writes a program.
type writer struct {
	t         *rapid.T
	text      strings.Builder
	n         int
	saved     map[string][]string // the names of answers, by object
	generated map[string]bool     // the resources of which there is an object with such a name
}

func (w *writer) one(of ...string) string { return rapid.SampledFrom(of).Draw(w.t, "of") }

// in reports true in one of n draws.
func (w *writer) in(n int) bool { return rapid.IntRange(1, n).Draw(w.t, "in") == n }

func (w *writer) kind() *programKind {
	return &programKinds[rapid.IntRange(0, len(programKinds)-1).Draw(w.t, "kind")]
}

// line writes a step, whose answer gets a name.
func (w *writer) line(object, format string, args ...any) {
	w.n++
	name := fmt.Sprintf("s%d", w.n)
	w.saved[object] = append(w.saved[object], name)
	fmt.Fprintf(&w.text, "%s = %s\n", name, fmt.Sprintf(format, args...))
}

func (w *writer) body(format string, args ...any) {
	fmt.Fprintf(&w.text, "  %s\n", fmt.Sprintf(format, args...))
}

// earlier is the name of an answer about an object before this step, the last one most of the
// time.
func (w *writer) earlier(object string) string {
	all := w.saved[object]
	if n := len(all); n > 0 && all[n-1] == fmt.Sprintf("s%d", w.n) {
		all = all[:n-1]
	}
	if len(all) == 0 {
		return ""
	}
	if w.in(3) {
		return rapid.SampledFrom(all).Draw(w.t, "earlier")
	}
	return all[len(all)-1]
}

// request writes one request about one of few objects.
func (w *writer) request() {
	k := w.kind()
	name := w.one("a", "b")
	object := k.resource + "/" + name
	switch w.one("create", "create", "put", "patch", "patch", "apply", "apply", "delete", "get", "list", "deleteAll", "status", "scale") {
	case "create":
		w.create(k, name, object)
	case "put":
		w.put(k, name, object, "")
	case "patch":
		w.patch(k, name, object, "")
	case "apply":
		w.apply(k, name, object, "")
	case "delete":
		w.line(object, "DELETE $%s/%s%s", k.resource, name, w.options("", "gracePeriodSeconds=0", "propagationPolicy=Background", "propagationPolicy=Foreground", "propagationPolicy=Orphan", "dryRun=All"))
		w.preconditions(object)
	case "get":
		w.line(object, "GET $%s/%s", k.resource, name)
	case "list":
		w.list(k)
	case "deleteAll":
		w.line(k.resource, "DELETE $%s?labelSelector=l=%s", k.resource, w.one("x", "y"))
	case "status":
		w.status(k, name, object)
	case "scale":
		w.scale(k, name, object)
	}
}

// options is a query with some of the options.
func (w *writer) options(of ...string) string {
	text := ""
	for _, o := range []string{w.one(of...), w.one("", "", "", "fieldManager=m", "fieldManager=n"), w.one("", "", "", "", "fieldValidation=Strict", "fieldValidation=Ignore")} {
		if o != "" {
			text += "&" + o
		}
	}
	if text == "" {
		return ""
	}
	return "?" + text[1:]
}

// metadata is what an object or a patch has of it, beside its name.
func (w *writer) metadata(object string, patch bool) string {
	of := []string{"", "", "", ", labels: {l: x}", ", labels: {l: y, m: z}", ", annotations: {note: '1'}", ", finalizers: [kates.io/f]", ", labels: {}", ", generation: 7", ", labels: {'bad key': v}"}
	if patch {
		of = append(of, ", labels: {l: null}", ", labels: null", ", finalizers: null", ", finalizers: []", ", finalizers: [kates.io/g]", ", annotations: null")
		if resets(object) {
			of = append(of, ", managedFields: [{}]")
		}
		if e := w.earlier(object); e != "" {
			of = append(of, ", resourceVersion: '$"+e+".rv'", ", resourceVersion: '$"+e+".rv'", ", uid: $"+e+".uid", ", uid: $UID")
		}
	} else {
		of = append(of, ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: o, uid: x}]", ", uid: $UID")
	}
	return w.one(of...)
}

// resets reports whether nobody may come to manage an object. A scale of such a one is stored anew
// by the second write that changes nothing: that is not kept here.
func resets(object string) bool {
	return !strings.HasPrefix(object, "widgets/") && !strings.HasPrefix(object, "deployments/")
}

func (w *writer) create(k *programKind, name, object string) {
	w.line(object, "POST $%s%s", k.resource, w.options("", "", "", "dryRun=All"))
	named := "name: " + name
	if !w.generated[k.resource] && w.in(8) { // of several, the order would be one of chance
		w.generated[k.resource] = true
		named = "generateName: g-"
	}
	w.whole(k, named+w.metadata(object, false))
}

func (w *writer) whole(k *programKind, metadata string) {
	content := w.one(k.whole...)
	if content != "" {
		content = ", " + content
	}
	w.body("{apiVersion: %s, kind: %s, metadata: {%s}%s}", k.apiVersion, k.kind, metadata, content)
}

func (w *writer) put(k *programKind, name, object, part string) {
	w.line(object, "PUT $%s/%s%s%s", k.resource, name, part, w.options("", "", "dryRun=All"))
	metadata := "name: " + name
	if e := w.earlier(object); e != "" && !w.in(3) {
		metadata += ", resourceVersion: '$" + e + ".rv'"
	}
	more := w.metadata(object, false)
	if w.in(2) {
		if more = w.metadata(object, true); strings.Contains(more, "resourceVersion") {
			more = ", selfLink: /link"
		}
	}
	w.whole(k, metadata+more)
}

func (w *writer) patch(k *programKind, name, object, part string) {
	how := w.one("MERGE", "MERGE", "JSON", "STRATEGIC")
	w.line(object, "%s $%s/%s%s%s", how, k.resource, name, part, w.options("", "", "dryRun=All"))
	if how == "JSON" {
		kind := `[{"op": "replace", "path": "/kind", "value": "Other"}]`
		if part != "" {
			kind = "[]" // a real server takes it, and forgets who manages the object
		}
		w.body("%s", w.one(kind,
			`[{"op": "add", "path": "/metadata/labels", "value": {"l": "x"}}]`, `[{"op": "add", "path": "/metadata/labels/l", "value": "y"}]`,
			`[{"op": "remove", "path": "/metadata/labels"}]`, `[{"op": "test", "path": "/metadata/name", "value": "a"}, {"op": "add", "path": "/metadata/annotations", "value": {"n": "2"}}]`,
			`[{"op": "remove", "path": "/metadata/finalizers"}]`, `[{"op": "nonsense"}]`, `[]`))
		return
	}
	var parts []string
	if m := strings.TrimPrefix(w.metadata(object, true), ", "); m != "" {
		parts = append(parts, "metadata: {"+m+"}")
	}
	if !w.in(4) {
		parts = append(parts, w.one(k.parts...))
	}
	w.body("{%s}", strings.Join(parts, ", "))
}

func (w *writer) apply(k *programKind, name, object, part string) {
	query := "?fieldManager=" + w.one("m", "n", "o") + w.one("", "", "&force=true", "&dryRun=All")
	w.line(object, "APPLY $%s/%s%s%s", k.resource, name, part, query)
	metadata := "name: " + name + w.one("", "", ", labels: {l: x}", ", labels: {m: u}", ", annotations: {note: '3'}", ", finalizers: [kates.io/f]", ", finalizers: [kates.io/h]")
	if e := w.earlier(object); e != "" && w.in(6) {
		metadata += w.one(", resourceVersion: '$"+e+".rv'", ", uid: $"+e+".uid")
	}
	whole := *k
	if k.scale && whole.whole[0] == "" { // see resets
		whole.whole = whole.whole[1:]
	}
	w.whole(&whole, metadata)
}

// preconditions writes the body of some deletions.
func (w *writer) preconditions(object string) {
	e := w.earlier(object)
	if e == "" || !w.in(4) {
		return
	}
	w.body("{apiVersion: v1, kind: DeleteOptions, %s}", w.one("preconditions: {resourceVersion: '$"+e+".rv'}", "preconditions: {uid: $"+e+".uid}", "preconditions: {uid: $UID}", "gracePeriodSeconds: 0"))
}

func (w *writer) list(k *programKind) {
	selectors := []string{"", "labelSelector=l=x", "labelSelector=l", "labelSelector=!l", "labelSelector=l in (x,y),m!=z", "fieldSelector=metadata.name=a", "fieldSelector=metadata.name!=a", "limit=1"}
	for _, f := range k.fields {
		selectors = append(selectors, "fieldSelector="+f)
	}
	query := "?" + w.one(selectors...)
	if w.in(4) {
		query += "&resourceVersionMatch=Exact&resourceVersion=$base.rv"
	}
	w.line(k.resource, "GET $%s%s", k.resource, query)
	if strings.Contains(query, "limit") {
		w.line(k.resource, "GET $%s?limit=1&continue=$%s.continue", k.resource, fmt.Sprintf("s%d", w.n))
	}
}

// status writes a request about the status of an object.
func (w *writer) status(k *programKind, name, object string) {
	switch w.one("put", "patch", "apply", "get") {
	case "put":
		w.put(k, name, object, "/status")
	case "patch":
		w.patch(k, name, object, "/status")
	case "apply":
		w.apply(k, name, object, "/status")
	case "get":
		w.line(object, "GET $%s/%s/status", k.resource, name)
	}
}

func (w *writer) scale(k *programKind, name, object string) {
	if !k.scale && !w.in(5) || k.custom { // a custom one is stored again by a later write that changes nothing
		w.line(object, "GET $%s/%s", k.resource, name)
		return
	}
	switch w.one("put", "patch", "apply", "get") {
	case "put":
		w.line(object, "PUT $%s/%s/scale", k.resource, name)
		w.body("{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: %s, namespace: $ns}, spec: {replicas: %s}}", name, w.one("2", "3"))
	case "patch":
		w.line(object, "MERGE $%s/%s/scale", k.resource, name)
		w.body("{spec: {replicas: %s}}", w.one("4", "5", "-1"))
	case "apply":
		w.line(object, "APPLY $%s/%s/scale?fieldManager=%s%s", k.resource, name, w.one("m", "n"), w.one("", "&force=true"))
		w.body("{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: %s}, spec: {replicas: %s}}", name, w.one("6", "7"))
	case "get":
		w.line(object, "GET $%s/%s/scale", k.resource, name)
	}
}

// histories writes watches of what has happened since the first answer of a kind, with and without
// a selector, up to an object that is made now.
func (w *writer) histories() {
	for i := range programKinds {
		k := &programKinds[i]
		if !w.in(2) {
			continue
		}
		selector := w.one("", "&labelSelector=l=x", "&labelSelector=!l")
		w.line(k.resource, "POST $%s", k.resource)
		labels := ""
		if strings.Contains(selector, "=x") {
			labels = ", labels: {l: x}"
		}
		w.body("{apiVersion: %s, kind: %s, metadata: {name: zz%s}, %s}", k.apiVersion, k.kind, labels, w.first(k))
		fmt.Fprintf(&w.text, "w%d = WATCH $%s?watch=1&resourceVersion=$base.rv%s\n", i, k.resource, selector)
		fmt.Fprintf(&w.text, "UNTIL w%d zz\n", i)
	}
}

// first is a content with which an object can be made.
func (w *writer) first(k *programKind) string {
	for _, c := range k.whole {
		if strings.HasPrefix(c, "spec: {") || strings.HasPrefix(c, "data: {") {
			return c
		}
	}
	return k.whole[0]
}
