package secrecy

import (
	"context"
	"flag"
	"log/slog"
	"os"

	"k8s.io/klog/v2"
)

// verbosity is the level of klog at which client-go says everything but the bodies of requests,
// which programs must ask for.
const verbosity = "5"

// Logs makes the default logger, and klog, say everything here. What they print stays what it was:
// slog from level Info, klog from Warning.
func Logs() {
	slog.SetDefault(slog.New(Handler(slog.NewTextHandler(os.Stderr, nil))))
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{
		"logtostderr": "false", "one_output": "true", "stderrthreshold": "WARNING", "v": verbosity,
	} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	klog.SetOutput(Writer())
}

// Handler returns a handler that passes on what the given one takes, and says everything here.
func Handler(to slog.Handler) slog.Handler {
	return &handler{to, slog.NewTextHandler(Writer(), &slog.HandlerOptions{Level: slog.Level(-100)})}
}

type handler struct{ to, all slog.Handler }

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	_ = h.all.Handle(ctx, r)
	if !h.to.Enabled(ctx, r.Level) {
		return nil
	}
	return h.to.Handle(ctx, r)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.to.WithAttrs(attrs), h.all.WithAttrs(attrs)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.to.WithGroup(name), h.all.WithGroup(name)}
}
