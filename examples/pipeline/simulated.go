package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/kates-go/kates/examples/pipeline/promote"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// simulated is a cluster in memory.
type simulated struct {
	name   string
	server *katestest.Server
	client *kates.Client // the program's
	admin  *kates.Client // of those who are not the program
}

func newSimulated(name string, options []kates.Option, contents ...katestest.Option) (*simulated, error) {
	server, err := katestest.StartServer(contents...)
	if err != nil {
		return nil, err
	}
	client, err := kates.NewClientFromRESTConfig(server.Config, options...)
	admin, failed := kates.NewClientFromRESTConfig(server.Config)
	if err = errors.Join(err, failed); err != nil {
		server.Close()
		return nil, err
	}
	return &simulated{name, server, client, admin}, nil
}

func (c *simulated) member() fleet.Member { return fleet.Member{Name: c.name, Client: c.client} }

func (c *simulated) close() {
	c.admin.Close()
	c.client.Close()
	c.server.Close()
}

// rollOut does what controllers and kubelets would do in a cluster: some time after a change of a
// spec, the status says that it is done, or has failed.
func (c *simulated) rollOut(ctx context.Context) {
	for more := true; more; more = pause(ctx, 200*time.Millisecond) {
		for _, kind := range []string{"deployments", "sites"} {
			var all []*kates.Unstructured
			if c.admin.List(ctx, kates.Query{Kind: kind}, &all) != nil {
				continue
			}
			for _, o := range all {
				_, _ = kates.ModifyStatus(ctx, c.admin, o, func(o *kates.Unstructured) error {
					o.Object["status"] = rolledOut(o)
					return nil
				})
			}
		}
	}
}

// rolledOut is the status of an object whose spec is in effect.
func rolledOut(o *kates.Unstructured) map[string]any {
	if o.GetKind() == "Site" {
		return map[string]any{"observedGeneration": o.GetGeneration(), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	}
	status := map[string]any{
		"observedGeneration": o.GetGeneration(), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
	}
	if broken(o) {
		status["availableReplicas"], status["readyReplicas"] = int64(0), int64(0)
		status["conditions"] = []any{map[string]any{
			"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "its pods do not become ready",
		}}
	}
	return status
}

func broken(o *kates.Unstructured) bool {
	image, _ := promote.Set{Path: "/spec/template/spec/containers/0/image"}.Get(o.Object)
	return strings.HasSuffix(image, "-broken")
}
