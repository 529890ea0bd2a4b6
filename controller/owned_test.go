package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

type ofOthers struct {
	Secrets []kates.Secret `kates:",owned"`
}

type parts struct {
	ofOthers
	Root       *kates.Deployment         `kates:",root"`
	ConfigMaps []*kates.ConfigMap        `kates:",owned"`
	Services   map[string]*kates.Service `kates:",owned,optional"`
	Pods       map[string]kates.Pod      `kates:",owned"`
	Hosts      []map[string]any          `kates:"hosts.example.com,owned"`
	Others     []*kates.Namespace        `kates:",optional"`
	Untagged   []*kates.ServiceAccount
	Info       controller.Info
}

func TestOwnedAreTheObjectsOfOwnedFieldsAndNeverNil(t *testing.T) {
	assert.NotNil(t, controller.Owned(&parts{}))
	p := &parts{
		ofOthers:   ofOthers{Secrets: make([]kates.Secret, 1)},
		ConfigMaps: []*kates.ConfigMap{{}, {}},
		Services:   map[string]*kates.Service{"y": {}, "x": {}},
		Pods:       map[string]kates.Pod{"p": {}},
		Hosts:      []map[string]any{{"metadata": map[string]any{"name": "h"}}},
		Others:     []*kates.Namespace{{}}, Untagged: []*kates.ServiceAccount{{}},
	}
	p.Secrets[0].Name, p.ConfigMaps[0].Name, p.ConfigMaps[1].Name = "s", "a", "b"
	p.Services["x"].Name, p.Services["y"].Name, p.Pods["p"] = "x", "y", podNamed("p")
	var names []string
	owned := controller.Owned(p)
	for _, o := range owned {
		names = append(names, o.GetName())
	}
	assert.Equal(t, []string{"s", "a", "b", "x", "y", "p", "h"}, names)
	assert.Same(t, &p.Secrets[0], owned[0])
	assert.Same(t, p.ConfigMaps[1], owned[2])
}

func podNamed(name string) (p kates.Pod) {
	p.Name = name
	return p
}

func TestOwnedPanicsOverWhatIsNoObject(t *testing.T) {
	type plain struct {
		Things []struct{ Spec string } `kates:"things.example.com,owned"`
	}
	assert.PanicsWithValue(t, "controller.Owned: the elements of field Things are struct { Spec string }, which does not say what object it is",
		func() { controller.Owned(&plain{Things: make([]struct{ Spec string }, 1)}) })
	assert.Empty(t, controller.Owned(&plain{}))
}
