package page

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/secret"
	"github.com/kates-go/kates/kates"
)

// hidden stands for a value that nobody may see.
const hidden = "(hidden)"

// shortestHidden is the length of the shortest hidden value that is looked for elsewhere. A
// shorter one is part of many words.
const shortestHidden = 4

var (
	errRedact    = errors.New("the object is not shown: the function of page.Redact panicked")
	errUnshown   = errors.New("the object is not shown: it cannot be made JSON")
	lastApplied  = corev1.LastAppliedConfigAnnotation
	identifying  = []string{"apiVersion", "kind", "type", "immutable"}
	identifyMeta = []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"}
)

// content is what may be shown of an object, with what tells whether two versions of it differ.
type content struct {
	shown  map[string]string // text by path
	whole  map[string]string // the same, with what is hidden; never shown
	hidden []string          // values that are hidden
}

// contentOf returns what may be shown of an object. It works on a copy. isSecret: what was watched
// are Secrets, whatever the object says.
func (p *Page) contentOf(o kates.Object, isSecret bool) (content, error) {
	var u *unstructured.Unstructured
	err := guard.Call(func() (err error) {
		u, err = jsonform.ToUnstructured(clientgoscheme.Scheme, o)
		return err
	})
	if err != nil || u == nil {
		return content{}, errUnshown // the error may quote the object
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	c := content{whole: flat(u.Object)}
	_, isTyped := o.(*corev1.Secret)
	if isSecret || isTyped || u.GetKind() == secret.Kind {
		u.Object = withoutSecrets(u.Object)
	}
	if p.redact != nil {
		lockorder.CallOut("the function of Redact")
		if err := guard.Call(func() error { p.redact(u); return nil }); err != nil {
			return content{}, errRedact // its text may quote the object
		}
		if annotations := u.GetAnnotations(); annotations[lastApplied] != "" {
			annotations[lastApplied] = hidden // a copy of the object, as text
			u.SetAnnotations(annotations)
		}
	}
	c.shown = flat(u.Object)
	c.hidden = hiddenValues(c.whole, c.shown)
	c.hideCopies()
	return c, nil
}

func withoutSecrets(object map[string]any) map[string]any {
	return secret.HideOwn(object, func(any, bool) any { return hidden })
}

// hiddenValues returns the values of an object that are not where they were, the longest first.
func hiddenValues(whole, shown map[string]string) (all []string) {
	for path, value := range whole {
		if shown[path] == value || path == lastAppliedPath {
			continue
		}
		all = append(all, value)
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			all = append(all, string(decoded))
		}
		all = append(all, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	all = slices.DeleteFunc(all, func(v string) bool { return len(v) < shortestHidden || v == hidden })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(all)
}

var lastAppliedPath = pathOf(pathOf("metadata", "annotations"), lastApplied)

// hideCopies hides the hidden values wherever else they are, but for what says which object it is.
func (c *content) hideCopies() {
	if len(c.hidden) == 0 {
		return
	}
	hide := replacerOf(c.hidden)
	for path, value := range c.shown {
		if !identifies(path) {
			c.shown[path] = hide.Replace(value)
		}
	}
}

func replacerOf(values []string) *strings.Replacer {
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, hidden)
		if quoted := strings.Trim(fmt.Sprintf("%q", v), `"`); quoted != v {
			pairs = append(pairs, quoted, hidden)
		}
	}
	return strings.NewReplacer(pairs...)
}

func identifies(path string) bool {
	if meta, is := strings.CutPrefix(path, "metadata."); is {
		return slices.Contains(identifyMeta, meta)
	}
	return slices.Contains(identifying, path)
}

// flat returns the values of a tree as texts, by path: "spec.ports[0].name". Empty maps and lists
// are values, too.
func flat(object map[string]any) map[string]string {
	all := map[string]string{}
	flatten("", object, all)
	return all
}

func flatten(at string, tree any, to map[string]string) {
	switch t := tree.(type) {
	case map[string]any:
		for name, value := range t {
			flatten(pathOf(at, name), value, to)
		}
		if len(t) == 0 && at != "" {
			to[at] = "{}"
		}
	case []any:
		for i, value := range t {
			flatten(fmt.Sprintf("%s[%d]", at, i), value, to)
		}
		if len(t) == 0 {
			to[at] = "[]"
		}
	default:
		to[at] = fmt.Sprint(tree)
	}
}

// pathOf is the path of a member. A name that has dots is quoted.
func pathOf(of, name string) string {
	if strings.ContainsAny(name, `.[]"`) {
		return fmt.Sprintf("%s[%q]", of, name)
	}
	return strings.TrimPrefix(of+"."+name, ".")
}

// isSecrets reports whether a resource in the form of a report ("secrets.v1") is that of Secrets.
func isSecrets(resource string) bool {
	name, rest, _ := strings.Cut(resource, ".")
	_, group, _ := strings.Cut(rest, ".")
	return secret.Resource(group, name)
}
