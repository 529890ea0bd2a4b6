package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/gateway"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/bench/internal/workload"
)

// gatewayOptions parses the flags of gateway.
func gatewayOptions(args []string, stderr io.Writer) (o campaign.GatewayOptions, out string, err error) {
	flags := newFlags("gateway", stderr)
	flags.IntVar(&o.Ingresses, "ingresses", 1000, "number of Ingresses, each with two Services")
	flags.IntVar(&o.Endpoints, "endpoints", 10, "endpoints of each Service")
	flags.IntVar(&o.Rate, "rate", 200, "changes per second")
	flags.DurationVar(&o.Lasts, "for", time.Minute, "how long things change")
	flags.IntVar(&o.Runs, "runs", 3, "how often everything is measured")
	flags.DurationVar(&o.Settle, "settle", 3*time.Second, "how long a gateway may rest after its start")
	flags.DurationVar(&o.Patience, "patience", 5*time.Minute, "how long anything may take")
	flags.StringVar(&o.ProfileTo, "profiles", "", "folder for CPU and heap profiles of the time of changes (default: none)")
	names := flags.String("gateways", "", "which gateways (default: all)")
	if err := flags.parseMeasuring(args, &o.Note); err != nil {
		return o, "", err
	}
	if o.Log = stderr; flags.smoke {
		o.Ingresses, o.Endpoints, o.Rate, o.Lasts, o.Runs, o.Settle, o.Patience = 20, 3, 40, 2*time.Second, 1, 100*time.Millisecond, 2*time.Minute
	}
	if o.Ingresses < 1 || o.Endpoints < 1 || o.Rate < 1 || o.Runs < 1 || o.Settle < 0 || o.Patience <= 0 {
		return o, "", errors.New("ingresses, endpoints, rate, runs and patience must be above zero")
	}
	if n := 2 * o.Ingresses * o.Endpoints; n > workload.WebEndpoints {
		return o, "", fmt.Errorf("%d endpoints are too many: there can be %d", n, workload.WebEndpoints)
	}
	if n := int(o.Lasts.Seconds() * float64(o.Rate)); n < 20 {
		return o, "", fmt.Errorf("there are %d changes: there must be 20 at least, one of which is of an Ingress", n)
	}
	o.Gateways, err = gateway.Select(*names)
	return o, flags.out, err
}

// gateways measures gateways, and adds the results to the existing ones.
func gateways(ctx context.Context, args []string, _, stderr io.Writer) error {
	o, out, err := gatewayOptions(args, stderr)
	if err != nil {
		return err
	}
	return add(out, o.ProfileTo, func(r *report.Results) (err error) { r.Gateways, err = campaign.Gateways(ctx, o); return err },
		func(r *report.Results) error { return r.Gateways.Check() })
}

// gatewayTitles returns the gateways' names for people, in order.
func gatewayTitles() []report.Title {
	var all []report.Title
	for _, v := range gateway.Variants {
		all = append(all, report.Title{Consumer: v.Name, Text: v.Title})
	}
	return all
}

// route is the process of a gateway.
func route(ctx context.Context, args []string, stdout, _ io.Writer) error {
	return serve(ctx, "route: name one gateway", args, gateway.ByName, gateway.Serve, stdout)
}
