package rules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/source"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
	"github.com/kates-go/kates/kates/katestest"
)

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: map[string]string{"of": w.ns}}
}

func (w *world) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: w.meta(name)}
}

// has makes config maps as the administrator.
func (w *world) has(names ...string) {
	for _, name := range names {
		_, err := admin.CoreV1().ConfigMaps(w.ns).Create(w.Context(), w.configMap(name), metav1.CreateOptions{})
		require.NoError(w, err)
	}
}

// stored makes a deployment as the administrator.
func (w *world) stored() *appsv1.Deployment {
	labels := map[string]string{"app": "x"}
	d := &appsv1.Deployment{ObjectMeta: w.meta("x")}
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	d, err := admin.AppsV1().Deployments(w.ns).Create(w.Context(), d, metav1.CreateOptions{})
	require.NoError(w, err)
	return d
}

func (w *world) pod() *corev1.Pod {
	account := &corev1.ServiceAccount{ObjectMeta: w.meta("default")}
	_, err := admin.CoreV1().ServiceAccounts(w.ns).Create(w.Context(), account, metav1.CreateOptions{})
	require.NoError(w, err)
	p := &corev1.Pod{ObjectMeta: w.meta("p")}
	p.Spec.Containers, p.Spec.NodeName = []corev1.Container{{Name: "c", Image: "i"}}, "nowhere"
	p, err = admin.CoreV1().Pods(w.ns).Create(w.Context(), p, metav1.CreateOptions{})
	require.NoError(w, err)
	return p
}

// calls is a program that calls methods for config maps of its namespace.
func calls(run func(ctx context.Context, w *world, c *kates.Client) error, abilities ...kates.Ability) program {
	return program{
		needs: func(w *world) []kates.Need { return []kates.Need{kates.Uses(w.configMap(""), abilities...)} },
		run:   run,
	}
}

// deploys is a program that calls methods for the deployment of its namespace.
func deploys(run func(ctx context.Context, c *kates.Client, d *appsv1.Deployment) error, abilities ...kates.Ability) program {
	return program{
		needs: func(w *world) []kates.Need {
			return []kates.Need{kates.Uses(&appsv1.Deployment{ObjectMeta: w.meta("x")}, abilities...)}
		},
		run: func(ctx context.Context, w *world, c *kates.Client) error { return run(ctx, c, w.stored()) },
	}
}

// watchedAs is a struct of all forms of fields.
type watchedAs struct {
	Typed []*corev1.Service
	Whole []*kates.Unstructured `kates:"hosts.getambassador.io"`
	Some  []struct {
		Spec struct{ NodeName string } `json:"spec"`
	} `kates:"pods"`
	Meta   []*kates.PartialObjectMetadata `kates:"deployments.apps"`
	Maps   []*corev1.ConfigMap
	Named  kates.Lookup[*corev1.Secret]
	Labels []*corev1.ServiceAccount
}

func namedSecret(cm *corev1.ConfigMap) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: cm.Namespace, Name: "named"}}
}

func watchedQueries(w *world) []kates.Query {
	return []kates.Query{
		{Name: "Typed", Namespace: w.ns}, {Name: "Whole", LabelSelector: "of=" + w.ns},
		{Name: "Maps", Namespace: w.ns, FieldSelector: "metadata.name=one"},
		{Name: "Named", Refs: []kates.Ref{kates.RefsOf("Maps", namedSecret)}},
		{Name: "Labels", NamespaceSelector: "world=" + w.ns},
	}
}

// inNamespace is a struct whose query needs a role alone.
type inNamespace struct{ Maps []*corev1.ConfigMap }

// root is a controller's.
type root struct {
	Root *corev1.ConfigMap `kates:",root"`
	Own  []*corev1.Secret  `kates:",owned"`
	Info controller.Info
}

func election(w *world) kates.LeaderElection {
	return kates.LeaderElection{Namespace: w.ns, Name: "leader", RetryPeriod: 100 * time.Millisecond}
}

var programs = map[string]program{
	"get": calls(func(ctx context.Context, w *world, c *kates.Client) error {
		w.has("x")
		return c.Get(ctx, w.configMap("x"), nil)
	}, kates.CanGet),
	"list": calls(func(ctx context.Context, w *world, c *kates.Client) error {
		return c.List(ctx, kates.Query{Kind: "cm", Namespace: w.ns}, &[]*corev1.ConfigMap{})
	}, kates.CanList),
	"create": calls(func(ctx context.Context, w *world, c *kates.Client) error {
		return c.Create(ctx, w.configMap("x"), nil)
	}, kates.CanCreate),
	"update": calls(func(ctx context.Context, w *world, c *kates.Client) error {
		w.has("x")
		return c.Update(ctx, w.configMap("x"), nil)
	}, kates.CanUpdate),
	"patch": calls(func(ctx context.Context, w *world, c *kates.Client) error {
		w.has("x")
		return c.Patch(ctx, w.configMap("x"), kates.MergePatchType, []byte(`{"data":{"a":"b"}}`), nil)
	}, kates.CanPatch),
	"upsert": calls(func(ctx context.Context, w *world, c *kates.Client) error {
		one, other := w.configMap("x"), w.configMap("x")
		other.Data = map[string]string{"a": "b"}
		return errors.Join(c.Upsert(ctx, nil, one, nil), c.Upsert(ctx, nil, other, nil))
	}, kates.CanUpsert),
	"delete": calls(func(ctx context.Context, w *world, c *kates.Client) error {
		w.has("x")
		return c.Delete(ctx, w.configMap("x"), nil)
	}, kates.CanDelete),
	"modify": calls(func(ctx context.Context, w *world, c *kates.Client) error {
		w.has("x")
		return errors.Join(c.AddFinalizer(ctx, w.configMap("x"), "example.com/f"), c.RemoveFinalizer(ctx, w.configMap("x"), "example.com/f"))
	}, kates.CanModify),
	"apply": hiddenCreate(calls(func(ctx context.Context, w *world, c *kates.Client) error {
		return c.Apply(ctx, w.configMap("x"), nil)
	}, kates.CanApply)),
	"apply one": hiddenCreate(program{
		needs: func(w *world) []kates.Need { return []kates.Need{kates.Uses(w.configMap("x"), kates.CanApply)} },
		run:   func(ctx context.Context, w *world, c *kates.Client) error { return c.Apply(ctx, w.configMap("x"), nil) },
	}),
	"delete all": calls(deleteAll, kates.CanDeleteAll),
	"status": deploys(func(ctx context.Context, c *kates.Client, d *appsv1.Deployment) error {
		_, err := kates.ModifyStatus(ctx, c, d, func(d *appsv1.Deployment) error {
			d.Status.Replicas = 1
			return nil
		})
		return err
	}, kates.CanModifyStatus),
	"update the status": deploys(func(ctx context.Context, c *kates.Client, d *appsv1.Deployment) error {
		return c.UpdateStatus(ctx, d, nil)
	}, kates.CanUpdateStatus),
	"scale": deploys(func(ctx context.Context, c *kates.Client, d *appsv1.Deployment) error {
		scale := map[string]any{}
		err := c.GetSubresource(ctx, d, "scale", &scale)
		return errors.Join(err, c.PatchSubresource(ctx, d, "scale", kates.MergePatchType, []byte(`{"spec":{"replicas":3}}`), nil))
	}, kates.CanGet.Of("scale"), kates.CanPatch.Of("scale")),
	"evict": {
		needs: func(*world) []kates.Need { return []kates.Need{kates.Uses("pods", kates.CanCreate.Of("eviction"))} },
		run: func(ctx context.Context, w *world, c *kates.Client) error {
			return c.CreateSubresource(ctx, w.pod(), "eviction", &policyv1.Eviction{}, nil, kates.GracePeriod(0))
		},
	},
	"logs": {
		needs: func(*world) []kates.Need { return []kates.Need{kates.Uses(&corev1.Pod{}, kates.CanReadLogs)} },
		run:   logs,
	},
	"own": {
		needs: func(w *world) []kates.Need {
			return []kates.Need{kates.Uses(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}, kates.CanApplyOwned), kates.Uses(w.configMap(""), kates.CanOwn)}
		},
		run:    owns,
		hidden: map[string]string{"create secrets": `cannot create resource "secrets"`, "update configmaps/finalizers": "cannot set blockOwnerDeletion"},
	},
	"events": {needs: func(w *world) []kates.Need { return []kates.Need{events.Uses(w.ns)} }, run: records},
	"watch":  {needs: watchNeeds, run: watches, elsewhere: "get namespaces"},
	"a namespace that goes": {
		needs: func(w *world) []kates.Need {
			return []kates.Need{kates.Watches[inNamespace](kates.Query{Name: "Maps", Namespace: w.ns})}
		},
		run:      namespaceGoes,
		refusals: true,
	},
	"lead":       {needs: leadNeeds, run: leads},
	"shards":     {needs: shardNeeds, run: shards},
	"controller": {needs: rootNeeds, run: reconciles},
	"a fleet's member": {
		needs: func(w *world) []kates.Need {
			return []kates.Need{fleet.Watches[fleetView](kates.Query{Name: "Maps", LabelSelector: "of=" + w.ns})}
		},
		rules: fleet.Rules, run: member,
	},
	"a fleet's home": {
		needs: func(w *world) []kates.Need { return []kates.Need{source.Watches(secretsOf(mapping, w))} },
		run:   home,
	},
	"a warm start": {
		needs: func(*world) []kates.Need { return []kates.Need{kates.Query{Kind: "cm"}} },
		rules: func(ctx context.Context, _ *kates.Client, name string, needs ...kates.Need) (*kates.Roles, error) {
			c, err := kates.NewClientFromRESTConfig(server.Config, kates.WithWarmStart(nowhere{}))
			if err != nil {
				return nil, err
			}
			defer c.Close()
			return kates.Rules(ctx, c, name, needs...)
		},
		options: func(*world) []kates.Option { return []kates.Option{kates.WithWarmStart(nowhere{})} },
		run:     func(ctx context.Context, _ *world, c *kates.Client) error { return shown[inNamespace](ctx, c) },
	},
}

// nowhere keeps nothing for a warm start.
type nowhere struct{}

func (nowhere) Load(context.Context, string) (io.ReadCloser, error)       { return nil, fs.ErrNotExist }
func (nowhere) Save(context.Context, string, func(io.Writer) error) error { return nil }

// hiddenCreate is a program that creates by applying.
func hiddenCreate(p program) program {
	p.hidden = map[string]string{"create configmaps": `cannot create resource "configmaps"`}
	return p
}

// deleteAll has another object take the place of one that was listed.
func deleteAll(ctx context.Context, w *world, c *kates.Client) error {
	w.has("x")
	held := w.faults.On(katestest.Match{Verb: "delete"}).Hold()
	end := make(chan error, 1)
	go func() { end <- c.DeleteAll(ctx, kates.Query{Kind: "cm", Namespace: w.ns}) }() // ends with ctx
	if w.faults.Wait(ctx, func() bool { return held.Hits() > 0 }) == nil {
		if err := admin.CoreV1().ConfigMaps(w.ns).Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
			return err
		}
		w.has("x")
	}
	held.Stop()
	return <-end
}

func logs(ctx context.Context, w *world, c *kates.Client) error {
	p := w.pod()
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	lines := make(chan kates.LogEvent, 10)
	if err := c.PodLogs(ctx, named, nil, lines); err != nil {
		return err
	}
	return w.faults.Wait(ctx, func() bool { return len(w.faults.Requests(katestest.Match{Resource: "pods/log", Where: answered})) > 0 })
}

func owns(ctx context.Context, w *world, c *kates.Client) error {
	w.has("owner")
	owner, err := admin.CoreV1().ConfigMaps(w.ns).Get(ctx, "owner", metav1.GetOptions{})
	if err != nil {
		return err
	}
	set := kates.OwnedSet{Owner: owner, SetName: "set", Kinds: []string{"secrets"}}
	set.Objects = []kates.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}}
	_, err = c.ApplyOwned(ctx, set)
	set.Objects = nil
	_, pruned := c.ApplyOwned(ctx, set)
	return errors.Join(err, pruned)
}

func records(ctx context.Context, w *world, c *kates.Client) error {
	r, err := events.NewRecorder(ctx, c, "example.com/rules")
	if err != nil {
		return err
	}
	defer r.Close()
	sent := func(verb string) error {
		r.Eventf(w.configMap("x"), nil, events.Normal, "Seen", "Look", "it is there")
		return w.faults.Wait(ctx, func() bool {
			return len(w.faults.Requests(katestest.Match{Verb: verb, Resource: "events.events.k8s.io", Where: answered})) > 0
		})
	}
	if err := sent("create"); err != nil {
		return err
	}
	return sent("patch")
}

func answered(q katestest.Request) bool { return q.Status != 0 }

func watchNeeds(w *world) []kates.Need {
	var options []kates.RunOption
	for _, q := range watchedQueries(w) {
		options = append(options, q)
	}
	return []kates.Need{kates.Watches[watchedAs](options...)}
}

func watches(ctx context.Context, w *world, c *kates.Client) error {
	w.has("one")
	return shown[watchedAs](ctx, c, watchedQueries(w)...)
}

// shown watches until a snapshot is complete, and as new as the server.
func shown[S any](ctx context.Context, c *kates.Client, queries ...kates.Query) error {
	snapshots, err := kates.Watch[S](ctx, c, queries...)
	if err != nil {
		return err
	}
	defer snapshots.Close()
	for _, err := range snapshots.All(ctx) {
		if err != nil {
			return err
		}
		return c.Sync(ctx)
	}
	return fmt.Errorf("nothing was shown: %w", ctx.Err())
}
