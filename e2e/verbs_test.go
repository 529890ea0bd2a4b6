package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// ownWrite is one call of an own writer.
type ownWrite struct {
	w         *world
	ctx       context.Context
	id        id
	r         *rand.Rand
	generated *[]id // this writer's objects whose names the server chose
	got       **kates.Unstructured

	uid     types.UID // the UID that the write was for, if it named one
	deletes bool
	nothing bool // it leaves no trace
}

// name returns the object of the call with only its name.
func (o *ownWrite) name() *kates.Unstructured {
	return object(resourceOf(o.id), o.id.ns, o.id.name, nil)
}

func (o *ownWrite) one(of ...string) string { return of[o.r.IntN(len(of))] }

// ownVerbs are all verbs of the client, in all their forms. A call whose verb does not fit the
// object fails, and is excused.
var ownVerbs = []struct {
	name string
	do   func(o *ownWrite) error
}{
	{"create", func(o *ownWrite) error { return o.w.client.Create(o.ctx, o.w.fresh(o.id, o.r), o.got) }},
	{"create again", func(o *ownWrite) error { return o.w.client.Create(o.ctx, o.w.fresh(o.id, o.r), o.got) }},
	{"generateName", generate},
	{"update", func(o *ownWrite) error {
		return o.change(o.w.client.Update, func(u *kates.Unstructured) {
			u.SetLabels(map[string]string{"run": o.w.label, "in": o.one("0", "1"), "updated": o.one("1", "2", "3")})
		})
	}},
	{"update finalizers", func(o *ownWrite) error {
		return o.change(o.w.client.Update, func(u *kates.Unstructured) {
			u.SetFinalizers([][]string{nil, {"example.com/f"}, {"example.com/f", "example.com/g"}}[o.r.IntN(3)])
		})
	}},
	{"update the status", func(o *ownWrite) error {
		return o.change(o.w.client.UpdateStatus, func(u *kates.Unstructured) {
			field := map[string]string{"pods": "phase", "hosts": "state"}[o.id.resource]
			if field != "" {
				_ = unstructured.SetNestedField(u.Object, o.one("Running", "Pending"), "status", field)
			}
		})
	}},
	{"merge patch", func(o *ownWrite) error {
		return o.patch(kates.MergePatchType, `{"metadata":{"labels":{"in":%q}}}`, o.one("0", "1")) // may change nothing
	}},
	{"merge patch a field", func(o *ownWrite) error {
		fields := map[string]string{"pods": `{"metadata":{"annotations":{"a":%q}}}`, "configmaps": `{"data":{"a":%q}}`, "hosts": `{"spec":{"hostname":%q}}`}
		return o.patch(kates.MergePatchType, fields[o.id.resource], o.one("yes", "no"))
	}},
	{"merge patch finalizers", func(o *ownWrite) error { return o.patch(kates.MergePatchType, `{"metadata":{"finalizers":null}}`) }},
	{"merge patch with a precondition", func(o *ownWrite) error {
		return o.sure(func(u *kates.Unstructured, cond kates.WriteOption) error {
			return o.w.client.Patch(o.ctx, u, kates.MergePatchType, []byte(`{"metadata":{"labels":{"sure":"merge"}}}`), o.got, cond)
		})
	}},
	{"JSON patch", func(o *ownWrite) error {
		return o.patch(kates.JSONPatchType, `[{"op":"replace","path":"/metadata/labels/in","value":%q}]`, o.one("0", "1"))
	}},
	{"JSON patch with a precondition", func(o *ownWrite) error {
		return o.sure(func(u *kates.Unstructured, cond kates.WriteOption) error {
			return o.w.client.Patch(o.ctx, u, kates.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels/sure","value":"json"}]`), o.got, cond)
		})
	}},
	{"strategic merge patch", func(o *ownWrite) error {
		return o.patch(kates.StrategicMergePatchType, `{"metadata":{"annotations":{"a":%q},"$deleteFromPrimitiveList/finalizers":["example.com/f"]}}`, o.one("x", "y"))
	}},
	{"apply", func(o *ownWrite) error {
		u := o.w.fresh(o.id, o.r)
		unstructured.RemoveNestedField(u.Object, "spec", "nodeName")
		return o.w.client.Apply(o.ctx, u, o.got, kates.ForceOwnership())
	}},
	{"apply as two", func(o *ownWrite) error {
		u := o.name()
		u.SetLabels(map[string]string{"run": o.w.label, "applied": o.one("1", "2")})
		return o.w.client.Apply(o.ctx, u, o.got, kates.ForceOwnership(), kates.FieldManager("second"))
	}},
	{"upsert", func(o *ownWrite) error {
		source := o.name()
		source.SetLabels(map[string]string{"run": o.w.label, "upserted": o.one("1", "2", "3")})
		return o.w.client.Upsert(o.ctx, o.w.fresh(o.id, o.r), source, o.got)
	}},
	{"delete", func(o *ownWrite) error { return o.remove() }},
	{"delete at once", func(o *ownWrite) error { return o.remove(kates.GracePeriod(0)) }},
	{"delete with grace", func(o *ownWrite) error { return o.remove(kates.GracePeriod(time.Hour)) }},
	{"delete in the background", func(o *ownWrite) error { return o.remove(kates.Propagation(metav1.DeletePropagationBackground)) }},
	{"delete in the foreground", func(o *ownWrite) error { return o.remove(kates.Propagation(metav1.DeletePropagationForeground)) }},
	{"delete, orphans stay", func(o *ownWrite) error { return o.remove(kates.Propagation(metav1.DeletePropagationOrphan)) }},
	{"delete with a precondition", func(o *ownWrite) error {
		return o.sure(func(u *kates.Unstructured, cond kates.WriteOption) error { return o.remove(cond) })
	}},
	{"delete what the server named", deleteGenerated},
	{"dry run", func(o *ownWrite) error {
		o.nothing = true
		if o.r.IntN(2) == 0 {
			return o.w.client.Delete(o.ctx, o.name(), nil, kates.DryRun())
		}
		return o.w.client.Create(o.ctx, o.w.fresh(o.id, o.r), nil, kates.DryRun())
	}},
	{"list", func(o *ownWrite) error {
		o.nothing = true
		return o.w.client.List(o.ctx, kates.Query{Kind: o.id.resource, Namespace: o.id.ns}, &[]*kates.Unstructured{})
	}},
	{"observe", func(o *ownWrite) error {
		got, err := o.w.others.Resource(resourceOf(o.id)).Namespace(o.id.ns).Create(o.ctx, o.w.fresh(o.id, o.r), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		*o.got = got
		return o.w.client.Observe(o.ctx, got)
	}},
}

func (o *ownWrite) patch(pt kates.PatchType, format string, args ...any) error {
	if pt == kates.StrategicMergePatchType && o.id.resource == "hosts" {
		// custom kinds have none; this patch is empty
		pt, format, args = kates.MergePatchType, `{}`, nil
	}
	return o.w.client.Patch(o.ctx, o.name(), pt, fmt.Appendf(nil, format, args...), o.got)
}

// change reads, changes and writes.
func (o *ownWrite) change(write func(context.Context, any, any, ...kates.WriteOption) error, how func(*kates.Unstructured)) error {
	var u *kates.Unstructured
	if err := o.w.client.Get(o.ctx, o.name(), &u); err != nil {
		return err
	}
	how(u)
	return write(o.ctx, u, o.got)
}

// sure reads, and writes on condition that the object is still the same.
func (o *ownWrite) sure(write func(u *kates.Unstructured, cond kates.WriteOption) error) error {
	var u *kates.Unstructured
	if err := o.w.client.Get(o.ctx, o.name(), &u); err != nil {
		return err
	}
	o.uid = u.GetUID()
	return write(o.name(), []kates.WriteOption{kates.IfUID(u.GetUID()), kates.IfResourceVersion(u.GetResourceVersion())}[o.r.IntN(2)])
}

// remove deletes. A resource version as the precondition implies the UID.
func (o *ownWrite) remove(opts ...kates.WriteOption) error {
	o.deletes = true
	return o.w.client.Delete(o.ctx, o.name(), o.got, opts...)
}

func generate(o *ownWrite) error {
	u := o.w.fresh(o.id, o.r)
	u.SetName("")
	u.SetGenerateName("ours-")
	u.SetFinalizers(nil)
	o.id.name = ""
	if err := o.w.client.Create(o.ctx, u, o.got); err != nil {
		return err
	}
	o.id.name = (*o.got).GetName()
	*o.generated = append(*o.generated, o.id)
	return nil
}

// deleteGenerated deletes an object whose name the server chose.
func deleteGenerated(o *ownWrite) error {
	if o.nothing = len(*o.generated) == 0; o.nothing {
		return nil
	}
	o.id, *o.generated = (*o.generated)[0], (*o.generated)[1:]
	return o.remove(kates.GracePeriod(0))
}
