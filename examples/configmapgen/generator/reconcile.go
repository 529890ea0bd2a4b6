// Package generator makes ConfigMaps from ConfigTemplates and from the Secrets that these refer
// to.
//
// Start at [Generator.Reconcile], which the controller calls. Package controller does everything
// else that an operator needs. What a template takes from a Secret is then in a ConfigMap, for
// everybody who may read that.
package generator

import (
	"context"
	"errors"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

// Finalizer keeps a ConfigTemplate until its entry in the registry is removed.
const Finalizer = "configmapgen.kates.io/registry"

// Ready is the type of the condition.
const Ready = "Ready"

// Parts is a ConfigTemplate with everything that belongs to it.
type Parts struct {
	Root       *ConfigTemplate     `kates:",root"`
	ConfigMaps []*corev1.ConfigMap `kates:",owned"`
	// a change of what was looked up, even if it was not found, brings the next reconcile
	Secrets kates.Lookup[*corev1.Secret]
	Info    controller.Info
}

// Queries narrows what is watched to a namespace. "" means all namespaces.
func Queries(namespace string) []kates.RunOption {
	var all []kates.RunOption
	for _, field := range []string{"Root", "ConfigMaps", "Secrets"} {
		all = append(all, kates.Query{Name: field, Namespace: namespace})
	}
	return all
}

// Generator reconciles ConfigTemplates. Its methods may be called concurrently.
type Generator struct {
	Client   *kates.Client
	Registry Registry
	Log      *slog.Logger
}

// Reconcile makes the ConfigMaps of one ConfigTemplate. It may be called at any time, also after
// a crash, and depends only on what exists.
func (g *Generator) Reconcile(ctx context.Context, p *Parts) (controller.Result, error) {
	if p.Info.Departure != "" { // the finalizer has done its work, unless somebody removed it
		g.Log.Info("gone", "template", p.Info.Key)
		return controller.Done, g.Registry.Remove(ctx, p.Info.Key)
	}
	err := kates.UnderFinalizer(ctx, g.Client, p.Root, Finalizer,
		func(ctx context.Context, _ *ConfigTemplate) error { return g.generate(ctx, p) },
		func(ctx context.Context, _ *ConfigTemplate) error {
			// Its ConfigMaps are deleted because of their owner references.
			g.Log.Info("being deleted: removing its entry", "template", p.Info.Key)
			return g.Registry.Remove(ctx, p.Info.Key)
		})
	return controller.Done, err // an error means another try, after a backoff
}

// generate handles a ConfigTemplate that is not being deleted and has the finalizer.
func (g *Generator) generate(ctx context.Context, p *Parts) error {
	wanted, err := render(p.Root, func(name string) *corev1.Secret {
		secret, _ := p.Secrets.Get(p.Root.Namespace, name) // nil: it is missing, or invalid
		return secret
	})
	if problem := new(Problem); errors.As(err, &problem) {
		g.Log.Warn("not generated", "template", p.Info.Key, "reason", problem.Reason, "message", problem.Message)
		return g.setStatus(ctx, p.Root, nil, problem) // the ConfigMaps that exist stay
	}
	result, err := g.Client.ApplyOwned(ctx, kates.OwnedSet{
		Owner: p.Root, SetName: "configmapgen", Objects: wanted, Existing: objects(p.ConfigMaps),
	}, kates.ForceOwnership()) // changes by others are undone
	if err == nil {
		err = g.Registry.Put(ctx, p.Info.Key, names(wanted))
	}
	if err != nil {
		return errors.Join(err, g.setStatus(ctx, p.Root, nil, &Problem{"ApplyFailed", err.Error()}))
	}
	if len(result.Applied)+len(result.Pruned) > 0 {
		g.Log.Info("generated", "template", p.Info.Key,
			"applied", len(result.Applied), "unchanged", len(result.Unchanged), "pruned", len(result.Pruned))
	}
	return g.setStatus(ctx, p.Root, names(wanted), nil)
}

// setStatus reports the outcome for this generation of a ConfigTemplate. If the status says that
// already, nothing is sent.
func (g *Generator) setStatus(ctx context.Context, root *ConfigTemplate, configMaps []string, problem *Problem) error {
	next := root.DeepCopy()
	next.Status.ObservedGeneration = root.Generation
	condition := metav1.Condition{Type: Ready, Status: metav1.ConditionTrue, Reason: "Generated", ObservedGeneration: root.Generation}
	if problem != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, problem.Reason, problem.Message
	} else {
		next.Status.ConfigMaps = configMaps
	}
	meta.SetStatusCondition(&next.Status.Conditions, condition)
	_, err := kates.ModifyStatus(ctx, g.Client, root, func(now *ConfigTemplate) error {
		now.Status = next.Status
		return nil
	})
	if kates.IsNotFound(err) {
		return nil // it was deleted meanwhile, and another call follows
	}
	return err
}

func objects(configMaps []*corev1.ConfigMap) []kates.Object {
	all := make([]kates.Object, len(configMaps))
	for i, cm := range configMaps {
		all[i] = cm
	}
	return all
}

func names(objects []kates.Object) []string {
	all := make([]string, len(objects))
	for i, o := range objects {
		all[i] = o.GetName()
	}
	return all
}
