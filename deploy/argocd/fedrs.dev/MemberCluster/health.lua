-- Argo CD health of a MemberCluster.
--
--   Degraded     the controller can't use the cluster, for example because it is unreachable or its credentials are rejected
--   Progressing  the controller has not observed the spec yet, has not probed the cluster, or still drains it
--   Healthy      the API server of the cluster answers; a cordoned cluster is healthy, too
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function health(name, condition, default)
  return { status = name, message = condition and condition.message or default }
end

if status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", nil, "Waiting for the controller to observe the spec")
end
local ready = conditions.Ready
if ready == nil or ready.status == "Unknown" or ready.reason == "NotProbed" or ready.reason == "ProbeFailing" then
  return health("Progressing", ready, "Waiting for the controller to probe the cluster")
end
if ready.status ~= "True" then
  return health("Degraded", ready)
end
if conditions.Drained ~= nil and conditions.Drained.status ~= "True" then
  return health("Progressing", conditions.Drained)
end
return health("Healthy", ready)
