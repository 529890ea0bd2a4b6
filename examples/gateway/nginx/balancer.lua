-- Endpoints that change without a reload. The gateway sends those of each upstream that changes to
-- the control socket. They are in shared memory: all workers see them, those that are draining and
-- those after a reload, too.
local peers = require "ngx.balancer"

local shared = ngx.shared.endpoints
local M = {}

-- Of each upstream, this worker's list, with the version that it was made of, and a turn.
local lists = {}

-- store sets the endpoints of one upstream from "name address ...", or removes it with "-name".
-- The text comes before its version: who sees the new version sees no older text.
local function store(line)
    local removed = line:match("^%-(%S+)$")
    if removed then
        shared:delete("version " .. removed)
        shared:delete("text " .. removed)
        return true
    end
    local name, text = line:match("^(%S+) ?(.*)$")
    if not name then
        return false, "no upstream: " .. line
    end
    local ok, err = shared:safe_set("text " .. name, text)
    if ok then
        local number = (shared:get("number") or 0) + 1
        ok, err = shared:safe_set("number", number)
        if ok then
            ok, err = shared:safe_set("version " .. name, number)
        end
    end
    return ok, err
end

-- start runs in the master, at its start and before each reload. After a start the memory is empty:
-- the endpoints come from the file that the gateway has written.
function M.start(path, hash)
    M.hash = hash
    shared:add("instance", ngx.worker.pid() .. "." .. math.floor(ngx.now() * 1000))
    local file = io.open(path)
    if not file then
        return
    end
    for line in file:lines() do
        local name = line:match("^(%S+)")
        if name and not shared:get("version " .. name) then
            local ok, err = store(line)
            if not ok then
                ngx.log(ngx.ERR, "endpoints: ", err)
            end
        end
    end
    file:close()
end

-- list returns the endpoints of an upstream.
local function list(name)
    local version = shared:get("version " .. name)
    local known = lists[name]
    if known and known.version == version then
        return known
    end
    if not version then
        lists[name] = nil
        return nil
    end
    local new = { version = version, turn = known and known.turn or ngx.worker.pid() }
    for host, port in (shared:get("text " .. name) or ""):gmatch("(%S+):(%d+)") do
        new[#new + 1] = { host, tonumber(port) }
    end
    lists[name] = new
    return new
end

-- choose gives a request its list of endpoints, and a place in it: one after the other, and each
-- worker begins at another one.
function M.choose()
    local all = list(ngx.var.upstream)
    if not all or #all == 0 then
        return ngx.exit(503)
    end
    all.turn = all.turn + 1
    local ctx = ngx.ctx
    ctx.endpoints, ctx.turn, ctx.tries = all, all.turn, 0
end

-- balance says where to connect to. It is called again for each further try.
function M.balance()
    local ctx = ngx.ctx
    local all = ctx.endpoints
    if ctx.tries == 0 and #all > 1 then
        peers.set_more_tries(#all - 1)
    end
    local at = all[(ctx.turn + ctx.tries) % #all + 1]
    ctx.tries = ctx.tries + 1
    local ok, err = peers.set_current_peer(at[1], at[2])
    if not ok then
        ngx.log(ngx.ERR, "endpoint ", at[1], ": ", err)
        return ngx.exit(500)
    end
end

-- version answers which configuration this worker has, and of which master's life.
function M.version()
    ngx.say(M.hash, " ", shared:get("instance"))
end

-- endpoints takes changed upstreams.
function M.endpoints()
    ngx.req.read_body()
    local body = ngx.req.get_body_data()
    if not body then
        local path = ngx.req.get_body_file()
        local file = path and io.open(path)
        body = file and file:read("*a") or ""
        if file then
            file:close()
        end
    end
    for line in body:gmatch("[^\n]+") do
        local ok, err = store(line)
        if not ok then
            ngx.status = 507
            ngx.say(err)
            return
        end
    end
    M.version()
end

return M
