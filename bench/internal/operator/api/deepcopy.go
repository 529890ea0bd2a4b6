package api

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing.
func (a *App) DeepCopy() *App {
	c := *a
	a.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Settings = maps.Clone(a.Spec.Settings)
	c.Status.Conditions = slices.Clone(a.Status.Conditions)
	return &c
}

// DeepCopyObject is DeepCopy as any runtime.Object has it.
func (a *App) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing.
func (l *AppList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]App, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}
