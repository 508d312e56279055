-- The figures of Rollcall for redis_exporter: redis_exporter --script redis_exporter.lua
-- They become redis_script_values{key="rollcall_filters"} and so on, one for each number of INFO rollcall.
-- The version is no number, and redis_exporter would give up all of them for it.
local figures = {}
for field, value in string.gmatch(redis.call('INFO', 'rollcall'), '(rollcall_[%w_]+):(%d+)\r\n') do
    figures[#figures + 1] = field
    figures[#figures + 1] = value
end
return figures
