package promote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// Parts is what the controller needs of its own cluster. Everything else it learns from Root.
type Parts struct {
	Root *Pipeline `kates:"pipelines.pipeline.kates.io,root"`
	Info controller.Info
}

// Promoter promotes. Its controller runs in one cluster, and its targets are in those of a fleet.
type Promoter struct {
	Home    *kates.Client
	Fleet   *fleet.Fleet
	Targets *fleet.Targets
	Log     *slog.Logger
}

// Queries refine the fields of [Parts]: a status of the program's own wakes nobody.
func Queries() []kates.RunOption {
	return []kates.RunOption{kates.Query{Name: "Root", Signal: kates.GenerationChanged}}
}

// Reconcile looks at the stages of one Pipeline in their order, up to the first that is not
// healthy, and gives that one the version. It is called again when a target changes.
func (p *Promoter) Reconcile(ctx context.Context, parts *Parts) (controller.Result, error) {
	key := parts.Info.Key
	if parts.Info.Departure != "" {
		p.Targets.Drop(key)
		return controller.Done, nil
	}
	root := parts.Root
	var wanted []fleet.Target
	for _, s := range root.Spec.Stages {
		for _, t := range s.Targets {
			wanted = append(wanted, t.of())
		}
	}
	readers, err := p.Targets.Keep(key, wanted...)
	if err != nil {
		return controller.Done, kates.Permanent(err)
	}
	status := Status{ObservedGeneration: root.Generation, Stage: "done", Message: "version " + root.Spec.Version + " is everywhere"}
	var errs []error
	for i, next := 0, 0; i < len(root.Spec.Stages); i++ {
		s := root.Spec.Stages[i]
		due := status.Stage == "done" // all stages before are healthy
		stage, err := p.stage(ctx, root, s, readers[next:next+len(s.Targets)], due)
		next += len(s.Targets)
		errs = append(errs, err)
		status.Stages = append(status.Stages, stage)
		if due && stage.Ready < stage.Targets {
			status.Stage, status.Message = s.Name, stage.Message
		}
	}
	return controller.Done, errors.Join(append(errs, p.report(ctx, parts, status))...)
}

// stage looks at the targets of a stage, and gives them the version if it is their turn.
func (p *Promoter) stage(ctx context.Context, root *Pipeline, s Stage, readers []*fleet.Reader, due bool) (StageStatus, error) {
	status := StageStatus{Name: s.Name, Targets: len(s.Targets)}
	var errs []error
	for i, t := range s.Targets {
		reason, err := p.target(ctx, t, readers[i], t.Set.wants(root.Spec.Version), due)
		if err != nil {
			errs = append(errs, fmt.Errorf("stage %q: %s: %w", s.Name, t.of(), err))
			reason = err.Error()
		}
		switch {
		case reason == "":
			status.Ready++
		case status.Message == "":
			status.Message = fmt.Sprintf("%s in %s: %s", t.Name, t.Cluster, reason)
		}
	}
	return status, errors.Join(errs...)
}

// target says why one target is not healthy at the version; empty: it is. If it is due, it gets
// the version first. What the program has written is in the reader at once.
func (p *Promoter) target(ctx context.Context, t Target, r *fleet.Reader, want string, due bool) (reason string, err error) {
	object, err := r.Get()
	switch {
	case kates.IsNotFound(err):
		return "it does not exist", nil
	case errors.Is(err, fleet.ErrNotKnown): // when it is known, there is another call
		return errors.Unwrap(err).Error(), nil
	case err != nil:
		return err.Error(), nil
	}
	is, err := t.Set.Get(object.Object)
	if err != nil {
		return err.Error(), nil
	}
	if is != want {
		if !due {
			return "it waits for the stages before", nil
		}
		cluster := p.Fleet.Cluster(t.Cluster)
		if cluster == nil {
			return "its cluster has left", nil
		}
		p.Log.Info("promote", "cluster", t.Cluster, "kind", object.GetKind(), "name", t.Name, "from", is, "to", want)
		_, err := kates.Modify(ctx, cluster.Client(), object, func(o *kates.Unstructured) error {
			return t.Set.put(o.Object, want)
		})
		if err != nil {
			return "", err
		}
		if object, err = r.Get(); err != nil {
			return err.Error(), nil
		}
	}
	if since, stale := r.Stale(); stale {
		return fmt.Sprintf("its cluster has not answered since %s", since.Format(time.TimeOnly)), nil
	}
	if s := kates.StatusOf(object); !s.Ready() {
		return fmt.Sprintf("%s: %s", s.Phase, s.Message), nil
	}
	return "", nil
}

// report writes the status, if it is another one.
func (p *Promoter) report(ctx context.Context, parts *Parts, status Status) error {
	if before := parts.Root.Status; before.Stage != status.Stage || before.Message != status.Message {
		p.Log.Info("pipeline", "name", parts.Info.Key, "version", parts.Root.Spec.Version, "stage", status.Stage, "message", status.Message)
	}
	_, err := kates.ModifyStatus(ctx, p.Home, parts.Info.Root, func(now *Pipeline) error {
		now.Status = status
		return nil
	}, kates.IfUID(parts.Root.UID))
	if kates.IsNotFound(err) {
		return nil
	}
	return err
}
